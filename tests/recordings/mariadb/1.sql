-- What is there before Debezium looks: its snapshot.
create user debezium@'%' identified by 'debezium';
grant all on *.* to debezium@'%';
create table customers (
    id bigint primary key, name varchar(200) not null, city varchar(40), credit decimal(12,2), since date, notes longtext,
    changed timestamp(6) not null default '1970-01-01 00:00:01'
);
create table orders (
    id bigint primary key, customer_id bigint, amount decimal(12,2) not null, placed datetime(3),
    status enum('new', 'paid', 'sent') not null
);
create table items (
    order_id bigint, line int, product varchar(40), quantity smallint, price decimal(20,4), primary key (order_id, line)
);
create table kinds (
    id int primary key, customer_id bigint,
    tiny tinyint, tiny_u tinyint unsigned, small_u smallint unsigned, medium mediumint, whole_u int unsigned, big bigint,
    big_u bigint unsigned, flag tinyint(1), truth boolean, price decimal(12,2), wide decimal(38,10), price_u decimal(10,0),
    rate float, weight double, moment datetime, moment3 datetime(3), moment6 datetime(6), instant timestamp null,
    instant6 timestamp(6) null, day date, clock time, clock6 time(6), season year, fixed char(6), short varchar(20),
    raw binary(4), raws varbinary(20), picture blob, body mediumtext, feeling enum('calm', 'glad', 'Très content'),
    several set('a', 'b', 'c d'), bit1 bit(1), bits bit(12), doc json, ident uuid, place point
);
insert into kinds values
    (1, 1, -12, 200, 40000, -8000000, 3000000000, 9007199254740993, 9007199254740993, 1, true, 123.45, 1.5, 7, 1.5, 2.25,
     '2024-06-15 12:34:56', '2024-06-15 12:34:56.789', '2024-06-15 12:34:56.789012', '2024-06-15 12:34:56',
     '2024-06-15 12:34:56.789012', '2024-06-15', '12:34:56', '12:34:56.789012', 2024, 'ab', 'ünïcödé 🚀', x'deadbeef',
     x'deadbeef', x'00ff', 'body', 'Très content', 'a,c d', b'1', b'101010101011', '{"a": [1, 2.50], "b": null}',
     '6f9619ff-8b86-d011-b42d-00cf4fc964ff', point(1.5, -2.5)),
    (2, 2, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
     null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null),
    (3, 3, 127, 255, 65535, 8388607, 4294967295, 9223372036854775807, 18446744073709551615, 127, false, 9999999999.99,
     1234567890123456789012345678.0123456789, 9999999999, 3.4e38, 1.7976931348623157e308, '9999-12-31 23:59:59',
     '9999-12-31 23:59:59.999', '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07', '2038-01-19 03:14:07.999999',
     '9999-12-31', '838:59:59', '838:59:59.999999', 2155, '', '', x'ffffffff', '', '', '', 'calm', '', b'0',
     b'111111111111', '[]', 'ffffffff-ffff-ffff-ffff-ffffffffffff', point(0, 0)),
    (4, 4, -128, 0, 0, -8388608, 0, -9223372036854775808, 9223372036854775808, 0, 2, -9999999999.99, -0.0000000001, 0,
     -1.5, 0, '1000-01-01 00:00:00', '1000-01-01 00:00:00', '1000-01-01 00:00:00', '1970-01-01 00:00:01',
     '1970-01-01 00:00:01', '1000-01-01', '-838:59:59', '-00:00:00.000001', 1901, '1234', '2000', x'00000000', x'00',
     x'01', 'null', 'glad', 'a,b,c d', b'1', b'0', 'null', '00000000-0000-0000-0000-000000000000', point(0, 0));
-- numbers whose unscaled bytes are digits in base64
insert into kinds (id, customer_id, price, raws) values
    (5, 1, -26588.24, from_base64('1234')), (6, 1, -26620.89, from_base64('12E3')), (7, null, 123.45, from_base64('MDk='));

-- zero dates and the like, some in columns that may not be null
create table edges (
    id int primary key, moment datetime, moment6 datetime(6), instant timestamp null, day date,
    moment_not_null datetime not null, day_not_null date not null
);
insert into edges values
    (1, '0000-00-00 00:00:00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', '0000-00-00', '0000-00-00 00:00:00', '0000-00-00'),
    (2, '2024-06-00 00:00:00', '2024-06-00 00:00:00', null, '2024-00-00', '2024-06-15 00:00:00', '2024-06-15');
create table documents (
    id int primary key, customer_id bigint, title varchar(200), body longtext, raw longblob, doc json, amount decimal(12,2),
    moment datetime(6)
);
insert into documents select seq, seq % 5 + 1, concat('title ', seq), repeat(concat('body ', seq, ' '), 300),
    unhex(repeat('00fe', 500)), concat('{"id": ', seq, '}'), seq + 0.5, '2024-06-15 12:34:56.789012' from seq_1_to_9;

create table marks (id int primary key);
create table signals (id varchar(42) primary key, type varchar(32) not null, data varchar(2048));

-- the same rows as texts that have one reading
create view customers_answer as select
    id as c_id, name as c_name, city as c_city, cast(credit as char) as c_credit, cast(since as char) as c_since,
    notes as c_notes, cast(changed as char) as c_changed
from customers;
create view orders_answer as select
    id, customer_id, cast(amount as char) as amount, cast(placed as char) as placed, cast(status as char) as status
from orders;
create view items_answer as select
    order_id, line, product, quantity, cast(price as char) as price
from items;
create view kinds_answer as select
    id, customer_id, tiny, tiny_u, small_u, medium, whole_u, cast(big as char) as big, cast(big_u as char) as big_u, flag, truth,
    cast(price as char) as price, cast(wide as char) as wide, cast(price_u as char) as price_u, cast(rate as char) as rate,
    cast(weight as char) as weight, cast(moment as char) as moment, cast(moment3 as char) as moment3,
    cast(moment6 as char) as moment6, cast(instant as char) as instant, cast(instant6 as char) as instant6,
    cast(day as char) as day, cast(clock as char) as clock, cast(clock6 as char) as clock6, cast(season as char) as season,
    fixed, short, lower(hex(raw)) as raw, lower(hex(raws)) as raws, lower(hex(picture)) as picture, body,
    cast(feeling as char) as feeling, cast(several as char) as several, lpad(bin(bit1), 1, '0') as bit1,
    lpad(bin(bits), 12, '0') as bits, cast(doc as char) as doc, cast(ident as char) as ident,
    st_x(place) as place_x, st_y(place) as place_y
from kinds;
create view edges_answer as select
    id, cast(moment as char) as moment, cast(moment6 as char) as moment6, cast(instant as char) as instant,
    cast(day as char) as day, cast(moment_not_null as char) as moment_not_null, cast(day_not_null as char) as day_not_null
from edges;
create view documents_answer as select
    id, customer_id, title, body, lower(hex(raw)) as raw, cast(doc as char) as doc, cast(amount as char) as amount,
    cast(moment as char) as moment
from documents;
