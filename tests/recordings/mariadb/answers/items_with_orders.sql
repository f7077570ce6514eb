select json_object(
    'order_id', order_id, 'line', line, 'product', product, 'quantity', quantity, 'price', price, 'o_id', o.id,
    'o_customer_id', o.customer_id, 'o_amount', o.amount, 'o_placed', o.placed, 'o_status', o.status
) from items_answer join orders_answer as o on o.id = order_id order by order_id, line;
