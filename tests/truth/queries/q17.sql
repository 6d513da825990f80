-- What would be lost a year if small orders of a brand's parts in one container were not taken?
-- may part: p_brand = 'Brand#23'
-- must part: p_brand = 'Brand#23' and p_container like 'MED B%' and p_partkey in (select l_partkey from lineitem)
-- must lineitem: l_partkey in (select p_partkey from part where p_brand = 'Brand#23' and p_container like 'MED B%')
select sum(l_extendedprice) / 7.0 as avg_yearly
from lineitem
join part on p_partkey = l_partkey
where
  p_brand = 'Brand#23'
  and p_container like 'MED B%'
  and l_quantity < (
    select 0.2 * avg(item.l_quantity) from lineitem as item where item.l_partkey = p_partkey
  )
