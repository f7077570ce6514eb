-- Keys that change, rows that others refer to, and what went without a word.
insert into signals values ('ad-hoc-1', 'execute-snapshot', '{"data-collections": ["shop.customers"], "type": "incremental"}');
update customers set id = 1003 where id = 3;
update orders set customer_id = 1003 where customer_id = 3;
flush binary logs;
update customers set id = id + 2000 where id in (4, 5);
update customers set name = 'four', credit = credit + 0.01 where id = 2004;
insert into customers values (3, 'new three', 'Bonn', null, null, null, '2024-07-02 00:00:00');
update orders set id = id + 500 where id between 3 and 6;
update items set order_id = order_id + 500 where order_id between 3 and 5;
update items set line = line + 10 where order_id = 505;
update customers set city = 'Lima' where id = 1;
update kinds set id = id + 20 where id in (1, 2);
update kinds set customer_id = 2004 where id = 3;
delete from kinds where id = 5;
