select json_object(
    'id', id, 'customer_id', customer_id, 'title', title, 'body', body, 'raw', raw, 'doc', doc, 'amount', amount,
    'moment', moment, 'c_id', c_id, 'c_name', c_name, 'c_city', c_city, 'c_credit', c_credit, 'c_since', c_since,
    'c_notes', c_notes, 'c_changed', c_changed
) from documents_answer left join customers_answer on c_id = customer_id order by id;
