select row_to_json(t) from (
    select * from documents_answer left join customers_answer on c_id = customer_id order by id
) as t;
