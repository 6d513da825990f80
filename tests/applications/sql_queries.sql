-- One query each; the line before names its output. Views: see sql_queries.py.

-- select_star
SELECT * FROM customers;

-- projection
SELECT order_id, amount AS paid FROM orders;

-- expressions
SELECT order_id, amount * 1.19 AS gross, concat(region, '-', dt) AS label FROM orders;

-- filters
SELECT order_id FROM orders WHERE amount > 0 AND region = 'eu';

-- distinct_rows
SELECT DISTINCT segment FROM customers;

-- group_by
SELECT region, sum(amount) AS total, max(dt) AS last_day FROM orders GROUP BY region;

-- having
SELECT customer_id, avg(amount) AS mean FROM orders GROUP BY customer_id HAVING max(dt) > '2024-05-05';

-- count_star
SELECT region, count(*) AS n FROM orders GROUP BY region;

-- count_column
SELECT region, count(order_id) AS n FROM orders GROUP BY region;

-- count_distinct
SELECT region, count(DISTINCT customer_id) AS buyers, sum(amount) AS total FROM orders GROUP BY region;

-- inner_join
SELECT o.order_id, c.name FROM orders o JOIN customers c ON o.customer_id = c.customer_id;

-- left_join
SELECT o.order_id, c.segment FROM orders o LEFT JOIN customers c ON o.customer_id = c.customer_id;

-- full_join
SELECT coalesce(o.customer_id, c.customer_id) AS customer, o.amount, c.name
FROM orders o FULL JOIN customers c ON o.customer_id = c.customer_id;

-- using_join
SELECT customer_id, amount, name FROM orders JOIN customers USING (customer_id);

-- cross_join
SELECT o.order_id, r.currency, o.amount * r.rate AS converted FROM orders o CROSS JOIN rates r;

-- self_join
SELECT a.order_id, b.order_id AS earlier
FROM orders a JOIN orders b ON a.customer_id = b.customer_id AND a.dt > b.dt;

-- three_joins
SELECT c.segment, r.currency, sum(o.amount * r.rate) AS revenue
FROM orders o
JOIN customers c ON o.customer_id = c.customer_id
JOIN rates r ON r.month = substring(o.dt, 1, 7)
GROUP BY c.segment, r.currency;

-- semi_join
SELECT name FROM customers c LEFT SEMI JOIN orders o ON o.customer_id = c.customer_id;

-- anti_join
SELECT name FROM customers c LEFT ANTI JOIN orders o ON o.customer_id = c.customer_id;

-- exists_subquery
SELECT name FROM customers c
WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND o.amount > 20);

-- in_subquery
SELECT name, email FROM customers WHERE customer_id IN (SELECT customer_id FROM orders WHERE region = 'us');

-- not_in_subquery
SELECT name FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM orders WHERE amount < 0);

-- scalar_subquery
SELECT order_id, amount * (SELECT max(rate) FROM rates) AS converted FROM orders;

-- scalar_subquery_in_filter
SELECT order_id, amount FROM orders WHERE amount > (SELECT avg(rate) FROM rates);

-- correlated_subquery
SELECT name, (SELECT sum(o.amount) FROM orders o WHERE o.customer_id = c.customer_id) AS total FROM customers c;

-- derived_table
SELECT region, total * 2 AS doubled
FROM (SELECT region, sum(amount) AS total FROM orders GROUP BY region) t;

-- cte
WITH paid AS (SELECT customer_id, amount FROM orders WHERE amount > 0)
SELECT c.segment, sum(p.amount) AS total FROM paid p JOIN customers c ON p.customer_id = c.customer_id
GROUP BY c.segment;

-- nested_ctes
WITH paid AS (SELECT customer_id, amount FROM orders WHERE amount > 0),
     totals AS (SELECT customer_id, sum(amount) AS total FROM paid GROUP BY customer_id)
SELECT c.name, t.total FROM totals t JOIN customers c ON t.customer_id = c.customer_id;

-- cte_twice
WITH totals AS (SELECT region, sum(amount) AS total FROM orders GROUP BY region)
SELECT a.region, a.total - b.total AS difference FROM totals a JOIN totals b ON a.region <> b.region;

-- union_all
SELECT name AS label FROM customers UNION ALL SELECT region AS label FROM orders;

-- union_distinct
SELECT customer_id, 1 AS side FROM customers UNION SELECT customer_id, 2 AS side FROM orders;

-- intersect_rows
SELECT customer_id FROM customers INTERSECT SELECT customer_id FROM orders;

-- except_rows
SELECT customer_id FROM customers EXCEPT SELECT customer_id FROM orders;

-- window_sum
SELECT order_id, sum(amount) OVER (PARTITION BY customer_id ORDER BY dt) AS running FROM orders;

-- window_rank
SELECT order_id, row_number() OVER (PARTITION BY region ORDER BY amount DESC) AS place FROM orders;

-- window_lag
SELECT order_id, amount - lag(amount) OVER (PARTITION BY customer_id ORDER BY dt) AS change FROM orders;

-- top_per_group
SELECT order_id, region, amount
FROM (SELECT order_id, region, amount, row_number() OVER (PARTITION BY region ORDER BY amount DESC) AS place
      FROM orders) ranked
WHERE place = 1;

-- case_when
SELECT order_id, CASE WHEN region = 'eu' THEN amount ELSE 0.0 END AS eu_amount FROM orders;

-- case_of_two
SELECT customer_id, CASE segment WHEN 'private' THEN name ELSE email END AS contact FROM customers;

-- if_function
SELECT order_id, if(amount > 0, region, dt) AS told FROM orders;

-- coalesced
SELECT o.order_id, coalesce(c.email, c.name) AS contact
FROM orders o LEFT JOIN customers c ON o.customer_id = c.customer_id;

-- casts
SELECT CAST(order_id AS STRING) AS id, CAST(dt AS DATE) AS day FROM orders;

-- dates
SELECT order_id, date_add(to_date(dt), 1) AS next_day, year(to_date(dt)) AS year FROM orders;

-- rolled_up
SELECT region, dt, sum(amount) AS total FROM orders GROUP BY ROLLUP (region, dt);

-- cubed
SELECT region, dt, sum(amount) AS total FROM orders GROUP BY CUBE (region, dt);

-- grouping_sets
SELECT region, dt, sum(amount) AS total FROM orders GROUP BY GROUPING SETS ((region), (dt));

-- pivoted
SELECT * FROM (SELECT dt, region, amount FROM orders)
PIVOT (sum(amount) FOR region IN ('eu' AS eu, 'us' AS us));

-- unpivoted
SELECT * FROM (SELECT customer_id, name, email FROM customers)
UNPIVOT (told FOR kind IN (name, email));

-- nested_fields
SELECT customer_id, address.city AS city, address.geo.lat AS latitude FROM profiles;

-- struct_made
SELECT customer_id, named_struct('who', name, 'mail', email) AS contact FROM customers;

-- exploded
SELECT customer_id, tag FROM profiles LATERAL VIEW explode(tags) exploded AS tag;

-- map_value
SELECT customer_id, attributes['tier'] AS tier FROM profiles;

-- array_functions
SELECT customer_id, transform(tags, t -> upper(t)) AS loud, size(tags) AS n FROM profiles;

-- masked
SELECT customer_id, sha2(email, 256) AS mail_hash, md5(name) AS name_hash FROM customers;

-- literals
SELECT order_id, 'web' AS channel, 1 AS one FROM orders;

-- top_three
SELECT order_id, amount FROM orders ORDER BY amount DESC LIMIT 3;

-- filtered_aggregate
SELECT customer_id, sum(amount) FILTER (WHERE region = 'eu') AS eu_total FROM orders GROUP BY customer_id;

-- inline_values
SELECT id, label FROM VALUES (1, 'one'), (2, 'two') AS t(id, label);
