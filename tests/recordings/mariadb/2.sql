-- Changes of one key after another, while Debezium reads the log.
update kinds set tiny = 7 where id = 1;
update kinds as k join kinds as o on o.id = 1 set k.tiny = o.tiny, k.big_u = o.big_u, k.price = o.price, k.moment = o.moment,
    k.moment3 = o.moment3, k.moment6 = o.moment6, k.instant = o.instant, k.instant6 = o.instant6, k.day = o.day, k.clock = o.clock,
    k.clock6 = o.clock6, k.season = o.season, k.fixed = o.fixed, k.short = o.short, k.raw = o.raw, k.raws = o.raws,
    k.picture = o.picture, k.body = o.body, k.feeling = o.feeling, k.several = o.several, k.bit1 = o.bit1, k.bits = o.bits,
    k.doc = o.doc, k.ident = o.ident, k.place = o.place, k.flag = o.flag, k.truth = o.truth,
    k.rate = o.rate, k.weight = o.weight, k.whole_u = o.whole_u, k.wide = o.wide where k.id = 2;
insert into kinds (id, customer_id, tiny) values (11, 1, 1);
insert into kinds select 13, customer_id, tiny, tiny_u, small_u, medium, whole_u, big, big_u, flag, truth, price, wide, price_u, rate,
    weight, moment, moment3, moment6, instant, instant6, day, clock, clock6, season, fixed, short, raw, raws, picture, body, feeling,
    several, bit1, bits, doc, ident, place from kinds where id = 3;
insert into kinds select 14, customer_id, tiny, tiny_u, small_u, medium, whole_u, big, big_u, flag, truth, price, wide, price_u, rate,
    weight, moment, moment3, moment6, instant, instant6, day, clock, clock6, season, fixed, short, raw, raws, picture, body, feeling,
    several, bit1, bits, doc, ident, place from kinds where id = 4;
delete from kinds where id = 7;
-- a new file of the log, in which positions begin anew
flush binary logs;
update kinds set id = 12 where id = 6;
update kinds set price = null, raws = null where id = 5;
insert into edges select id + 10, moment, moment6, instant, day, moment_not_null, day_not_null from edges where id = 1;
update documents set title = 'other title' where id in (1, 2, 3, 4);
update documents set id = 30 where id = 3;
delete from documents where id = 4;
begin;
update customers set city = 'Oslo' where id = 1;
update customers set city = 'Bergen' where id = 1;
commit;
begin;
delete from customers where id = 2;
insert into customers values (2, 'two again', 'Rome', 2.20, '2024-02-29', null, '2024-07-01 00:00:00');
commit;
