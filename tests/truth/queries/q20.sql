-- Which suppliers of a nation have more of a line of parts than half of what a year sold?
-- may lineitem: l_shipyear = 1994
-- must lineitem: l_shipyear = 1994 and (l_partkey, l_suppkey) in (select (ps_partkey, ps_suppkey) from partsupp join part on p_partkey = ps_partkey join supplier on s_suppkey = ps_suppkey join nation on n_nationkey = s_nationkey where p_name like 'forest%' and n_name = 'CANADA')
-- must part: p_name like 'forest%' and p_partkey in (select l_partkey from lineitem join supplier on s_suppkey = l_suppkey join nation on n_nationkey = s_nationkey where n_name = 'CANADA' and l_shipyear = 1994)
-- must partsupp: ps_partkey in (select p_partkey from part where p_name like 'forest%') and ps_suppkey in (select s_suppkey from supplier join nation on n_nationkey = s_nationkey where n_name = 'CANADA') and (ps_partkey, ps_suppkey) in (select (l_partkey, l_suppkey) from lineitem where l_shipyear = 1994)
-- must supplier: s_nationkey in (select n_nationkey from nation where n_name = 'CANADA')
-- must nation: n_name = 'CANADA'
select s_name, s_address
from supplier
join nation on s_nationkey = n_nationkey
where
  n_name = 'CANADA'
  and s_suppkey in (
    select ps_suppkey
    from partsupp
    where
      ps_partkey in (select p_partkey from part where p_name like 'forest%')
      and ps_availqty > (
        select 0.5 * sum(l_quantity)
        from lineitem
        where l_partkey = ps_partkey and l_suppkey = ps_suppkey and l_shipyear = 1994
      )
  )
order by s_name
