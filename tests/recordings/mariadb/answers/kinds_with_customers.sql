select json_object(
    'id', id, 'customer_id', customer_id, 'tiny', tiny, 'tiny_u', tiny_u, 'small_u', small_u, 'medium', medium,
    'whole_u', whole_u, 'big', big, 'big_u', big_u, 'flag', flag, 'truth', truth, 'price', price, 'wide', wide,
    'price_u', price_u, 'rate', rate, 'weight', weight, 'moment', moment, 'moment3', moment3, 'moment6', moment6,
    'instant', instant, 'instant6', instant6, 'day', day, 'clock', clock, 'clock6', clock6, 'season', season,
    'fixed', fixed, 'short', short, 'raw', raw, 'raws', raws, 'picture', picture, 'body', body, 'feeling', feeling,
    'several', several, 'bit1', bit1, 'bits', bits, 'doc', doc, 'ident', ident, 
    'place_x', place_x, 'place_y', place_y, 'c_id', c_id, 'c_name', c_name, 'c_city', c_city, 'c_credit', c_credit,
    'c_since', c_since, 'c_notes', c_notes, 'c_changed', c_changed
) from kinds_answer left join customers_answer on c_id = customer_id order by id;
