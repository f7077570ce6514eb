-- Changes of one key after another, while Debezium reads the log.
update kinds set whole = 7 where id = 1;
update kinds set (small, price, free, rate, weight, cash, moment, moment3, instant, day, clock, clock3, zoned, span, raw,
    flag, bit1, bits, varbits, doc, plain, markup, ident, pairs, label, words, numbers, amounts, moments, instants, days, flags,
    idents, feeling, fixed, short, address, net, mac, whole_range, time_range, place, ref) = (select small, price, free, rate, weight,
    cash, moment, moment3, instant, day, clock, clock3, zoned, span, raw, flag, bit1, bits, varbits, doc, plain, markup, ident,
    pairs, label, words, numbers, amounts, moments, instants, days, flags, idents, feeling, fixed, short, address, net, mac,
    whole_range, time_range, place, ref from kinds where id = 1) where id = 2;
insert into kinds select 11 as id, (k.r).customer_id, (k.r).small from (select k as r from kinds as k where id = 1) as k;
delete from kinds where id = 7;
update kinds set id = 12 where id = 8;
update kinds set price = null, cash = null, raw = null, doc = null, words = null where id = 9;
insert into kinds (id, customer_id, price, day, instant) values (7, 3, 0.10, '2024-02-29', '2024-03-31 02:30:00+01');

insert into edges values (10, 'infinity', null, '-infinity');
update edges set (moment, instant, day) = ('2000-01-01', 'infinity', 'infinity') where id = 9;

-- all but the title are left out of the log; then some; then the key
update documents set title = 'other title' where id in (1, 2, 3, 4);
update documents set body = 'short', raw = '\x01', doc = '{}', words = '{}', numbers = null, pairs = '' where id = 2;
update documents set id = 30 where id = 3;
delete from documents where id = 4;
insert into documents select * from document(4);
update documents set title = null where id = 4;

-- two changes of a row in one transaction, and a transaction that begins first and ends last is not needed for that
begin;
update customers set notes = repeat('long note ', 300) where id in (1, 2);
update customers set city = 'Oslo' where id = 1;
update customers set city = 'Bergen' where id = 1;
commit;

-- a column that comes later: rows before it have none
alter table customers add column tier numeric(6,3);
create or replace view customers_answer as select
    id as c_id, name as c_name, city as c_city, credit::text as c_credit, since::text as c_since, notes as c_notes,
    changed::text as c_changed, tier::text as c_tier
from customers;
update customers set tier = -1.5 where id = 1;
insert into customers values (21, 'twenty-one', null, null, null, null, '2024-07-01 00:00:00+00', 123.456);
begin;
delete from customers where id = 2;
insert into customers values (2, 'two again', 'Rome', 2.20, '2024-02-29', null, '2024-07-01 00:00:00+00');
commit;
begin;
update customers set city = 'nowhere';
rollback;
