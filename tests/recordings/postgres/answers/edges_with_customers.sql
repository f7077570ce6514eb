select row_to_json(t) from (
    select e.*, c.* from edges_answer as e left join customers_answer as c on c_id = e.id order by e.id
) as t;
