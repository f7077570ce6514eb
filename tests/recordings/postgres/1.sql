-- What is there before Debezium looks: its snapshot.
create extension hstore;
create extension ltree;
create type mood as enum ('calm', 'glad', 'Très content');
create type state as enum ('new', 'paid', 'sent');

create table customers (
    id bigint primary key, name text not null, city varchar(40), credit numeric(12,2), since date,
    notes text, changed timestamptz not null
);
alter table customers alter column notes set storage external;
create table orders (
    id bigint primary key, customer_id bigint, amount numeric(12,2) not null, placed timestamp(3), status state not null,
    tags text[]
);
alter table orders replica identity full;
create table items (
    order_id bigint, line int, product text, quantity smallint, price numeric, primary key (order_id, line)
);

-- every type with a cell that another type could be read from
create table kinds (
    id int primary key, customer_id bigint,
    small smallint, whole integer, big bigint, price numeric(12,2), free numeric, rate real, weight double precision,
    cash money, moment timestamp, moment3 timestamp(3), instant timestamptz, day date, clock time, clock3 time(3),
    zoned timetz, span interval, raw bytea, flag boolean, bit1 bit(1), bits bit(12), varbits bit varying(20),
    doc jsonb, plain json, markup xml, ident uuid, pairs hstore, label ltree, words text[], numbers int[],
    amounts numeric(10,2)[], moments timestamp[], instants timestamptz[], days date[], flags boolean[], idents uuid[],
    feeling mood, fixed char(6), short varchar(20), address inet, net cidr, mac macaddr, whole_range int4range,
    time_range tstzrange, place point, ref oid
);
insert into kinds values
    (1, 1, 12, 345678, 9007199254740993, 123.45, 1.500, 1.5, 2.25, 12.34, '2024-06-15 12:34:56.789012',
     '2024-06-15 12:34:56.789', '2024-06-15 12:34:56.789012+02', '2024-06-15', '12:34:56.789012', '12:34:56.789',
     '12:34:56.789+02', '1 year 2 mons 3 days 04:05:06.789', '\xdeadbeef', true, B'1', B'101010101011', B'10110',
     '{"a": [1, 2.50], "b": null, "c": "x\ny"}', '{"a":1,  "a":2}', '<a b="1">x</a>', '6f9619ff-8b86-d011-b42d-00cf4fc964ff',
     'a=>1,"b c"=>NULL,d=>""', 'top.science', '{a,"b,c",NULL,"",NULL}', '{1,NULL,-3}', '{1.50,NULL,-0.01}',
     '{"2024-06-15 12:34:56.789012",NULL}', '{"2024-06-15 12:34:56.789012+02"}', '{2024-06-15,NULL}', '{t,f,NULL}',
     '{6f9619ff-8b86-d011-b42d-00cf4fc964ff}', 'Très content', 'ab', 'ünïcödé 🚀', '192.168.0.1/24', '10.0.0.0/8',
     '08:00:2b:01:02:03', '[1,5)', '["2024-01-01 00:00:00+00","2024-02-01 00:00:00+00")', '(1.5,-2.5)', 4294967295),
    (2, 2, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
     null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
     null, null, null, null, null, null, null, null),
    -- the last of each
    (3, 3, 32767, 2147483647, 9223372036854775807, 9999999999.99, 123456789012345678901234567.0123456789, 3.4028235e38,
     1.7976931348623157e308, 92233720368547758.07, '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999',
     '9999-12-31 23:59:59.999999+00', '9999-12-31', '23:59:59.999999', '23:59:59.999', '23:59:59.999999-15:59',
     '178000000 years', '\x00ff', false, B'0', B'111111111111', B'11111111111111111111', '[]', '[]', '<a/>',
     'ffffffff-ffff-ffff-ffff-ffffffffffff', '', 'a', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', 'calm', '      ',
     '', '::1', '::/0', 'ff:ff:ff:ff:ff:ff', 'empty', '(,)', '(1e300,-1e-300)', 0),
    -- the first of each
    (4, 4, -32768, -2147483648, -9223372036854775808, -9999999999.99, -0.0000000001, -1.17549435e-38, -5e-324,
     -92233720368547758.08, '0001-01-01 00:00:00', '0001-01-01 00:00:00', '0001-01-01 00:00:00+00', '0001-01-01',
     '00:00:00', '00:00:00', '00:00:00+15:59', '-178000000 years', '\x', false, B'0', B'000000000000', B'', 'null',
     'null', '', '00000000-0000-0000-0000-000000000000', '""=>""', '', '{""}', '{0}', '{0.00}',
     '{"1600-01-01 00:00:00"}', '{"0001-01-01 00:00:00+00"}', '{0001-01-01}', '{f}',
     '{00000000-0000-0000-0000-000000000000}', 'glad', 'null', 'null', '0.0.0.0', '0.0.0.0/0', '00:00:00:00:00:00',
     '[,]', '(,2024-01-01 00:00:00+00]', '(0,-0)', 1),
    -- small and round, and what is no number
    (5, null, 0, 0, 0, 0.00, 0, 'NaN', 'NaN', 0, '1970-01-01 00:00:00', '1970-01-01 00:00:00', '1970-01-01 00:00:00+00',
     '1970-01-01', '00:00:00.000001', '00:00:00.001', '00:00:00Z', '0', '\x00', true, B'1', B'000000000001', B'0',
     '0', '0', '<b>&amp;</b>', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'k=>"null"', 'A.b_C', '{NULL}', '{NULL}', '{NULL}',
     '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', 'calm', '1234', '1234', '127.0.0.1', '127.0.0.1/32',
     '00:00:00:00:00:01', '[0,1)', 'empty', '(0,0)', 2),
    (6, 5, 1, 1, 1, 0.01, 1E+20, 'Infinity', '-Infinity', -0.01, '1969-12-31 23:59:59.999999', '1969-12-31 23:59:59.999',
     '1969-12-31 23:59:59.999999+00', '1969-12-31', '24:00:00', '24:00:00', '24:00:00+01', '-00:00:00.000001',
     '\x0102030405', false, B'0', B'100000000000', B'1', '{"n": 12345678901234567890.123456789}',
     '"\u00fc"', '<c>ü</c>', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12', '"ü"=>"🚀"', 'x.y.z', '{a,b}', '{1,2}',
     '{99999999.99}', '{"1969-12-31 23:59:59.999999"}', '{"1969-12-31 23:59:59.999999+00"}', '{1969-12-31}', '{t}',
     '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12}', 'glad', '2000', 'true', '10.1.2.3', '10.1.0.0/16', '0a:00:00:00:00:01',
     '[-5,5)', '[2024-01-01 00:00:00+00,infinity]', '(0.1,0.2)', 3);
-- numbers whose unscaled bytes are digits in base64: 1234, 12E3, 2000, MDk=
insert into kinds (id, customer_id, price, cash, free, raw) values
    (7, 1, -26588.24, -26588.24, -26588.24, decode('1234', 'base64')), (8, 1, -26620.89, -26620.89, 1200, decode('12E3', 'base64')),
    (9, 1, -24050.68, -24050.68, 2000, decode('2000', 'base64')), (10, 2, 123.45, 123.45, 123.45, decode('MDk=', 'base64'));

-- times without end, and of before Christ
create table edges (id int primary key, moment timestamp, instant timestamptz, day date);
insert into edges values
    (1, 'infinity', 'infinity', 'infinity'), (2, '-infinity', '-infinity', '-infinity'),
    (3, '0044-03-15 12:00:00 BC', null, null), (4, null, '0044-03-15 12:00:00+00 BC', null), (5, null, null, '0044-03-15 BC'),
    (6, '294276-12-31 23:59:59.999999', null, null), (7, null, '294276-12-31 23:59:59.999999+00', null),
    (8, null, null, '5874897-12-31'), (9, '2024-06-15 12:00:00', '2024-06-15 12:00:00+00', '2024-06-15');

-- values that are kept elsewhere (TOAST), and that the log leaves out where an update does not change them
create table documents (
    id int primary key, customer_id bigint, title text, body text, raw bytea, doc jsonb, words text[], numbers int[],
    pairs hstore, amounts numeric[], moments timestamp[], big numeric
);
alter table documents alter body set storage external, alter raw set storage external, alter doc set storage external,
    alter words set storage external, alter numbers set storage external, alter pairs set storage external,
    alter amounts set storage external, alter moments set storage external;
create function document(id int) returns setof documents language sql as $$
    select id, id % 5 + 1, 'title ' || id, repeat('body ' || id || ' ', 400), decode(repeat('00fe', 1500) || to_hex(id + 16), 'hex'),
        jsonb_build_object('id', id, 'text', repeat('doc ', 600)), array_fill('word ' || id, array[300]),
        array_fill(id, array[900]), hstore('k', repeat('v', 2500)), array_fill(1.5 + id, array[300]),
        array_fill('2024-06-15 12:34:56.789012'::timestamp, array[400]), id::numeric
$$;
insert into documents select d.* from generate_series(1, 5) as id, document(id) as d;

create table marks (id int primary key);
create table signals (id varchar(42) primary key, type varchar(32) not null, data varchar(2048));

-- the same rows as texts that have one reading
set intervalstyle to iso_8601;
alter database postgres set intervalstyle to iso_8601;
create view kinds_answer as select
    id, customer_id, small, whole, big, price::text, free::text, rate::text, weight::text, cash::numeric::text,
    moment::text, moment3::text, instant::text, day::text, clock::text, clock3::text, (zoned at time zone 'UTC')::text as zoned, span::text,
    greatest(-2::numeric ^ 63, least(2::numeric ^ 63 - 1, trunc(1000000 * (extract(year from span) * 12 + extract(month from span)) * 2629800
        + 1000000 * extract(epoch from span - date_trunc('month', span)))))::text as span_micros,
    encode(raw, 'hex') as raw, flag, bit1::text, bits::text, varbits::text, doc::text, plain::text, markup::text,
    ident::text, hstore_to_jsonb(pairs)::text as pairs, label::text, to_jsonb(words)::text as words,
    to_jsonb(numbers)::text as numbers, to_jsonb(amounts)::text as amounts, to_jsonb(moments)::text as moments,
    to_jsonb(instants)::text as instants, to_jsonb(days)::text as days, to_jsonb(flags)::text as flags,
    to_jsonb(idents)::text as idents, feeling::text, fixed::text || repeat(' ', 6 - length(fixed)) as fixed, short,
    address::text, net::text, mac::text, whole_range::text, time_range::text, place[0] as place_x, place[1] as place_y,
    ref::bigint
from kinds;
create view documents_answer as select
    id, customer_id, title, body, encode(raw, 'hex') as raw, doc::text, to_jsonb(words)::text as words,
    to_jsonb(numbers)::text as numbers, hstore_to_jsonb(pairs)::text as pairs, to_jsonb(amounts)::text as amounts,
    to_jsonb(moments)::text as moments, big::text
from documents;
create view customers_answer as select
    id as c_id, name as c_name, city as c_city, credit::text as c_credit, since::text as c_since, notes as c_notes,
    changed::text as c_changed, null::text as c_tier
from customers;
create view orders_answer as select
    id, customer_id, amount::text, placed::text, status::text, to_jsonb(tags)::text as tags
from orders;
create view items_answer as select order_id, line, product, quantity, price::text from items;
create view edges_answer as select id, moment::text, instant::text, day::text from edges;
