select row_to_json(t) from (
    select l.*, o.id as o_id, o.customer_id as o_customer_id, o.amount as o_amount, o.placed as o_placed, o.status as o_status,
        o.tags as o_tags
    from items_answer as l join orders_answer as o on o.id = l.order_id order by order_id, line
) as t;
