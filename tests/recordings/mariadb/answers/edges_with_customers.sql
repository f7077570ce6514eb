select json_object(
    'id', id, 'moment', moment, 'moment6', moment6, 'instant', instant, 'day', day,
    'moment_not_null', moment_not_null, 'day_not_null', day_not_null, 'c_id', c_id,
    'c_name', c_name, 'c_city', c_city, 'c_credit', c_credit, 'c_since', c_since, 'c_notes', c_notes,
    'c_changed', c_changed
) from edges_answer left join customers_answer on c_id = id order by id;
