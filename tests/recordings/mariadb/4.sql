-- The log has no more of a row than its key and what has changed.
set session binlog_row_image = MINIMAL;
update documents set title = 'minimal' where id = 5;
update documents set customer_id = null, amount = 0.01 where id = 6;
update documents set id = 70 where id = 7;
delete from documents where id = 8;
insert into documents (id, title) values (10, 'only a title');
update documents set title = 'again' where id = 30;
