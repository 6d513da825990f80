-- Which parts are an important share of a nation's stock, but for the first lot?
-- may partsupp: ps_lot >= 0
-- must partsupp: ps_lot >= 0 and ps_suppkey in (select s_suppkey from supplier join nation on n_nationkey = s_nationkey where n_name = 'GERMANY')
-- must supplier: s_nationkey in (select n_nationkey from nation where n_name = 'GERMANY')
-- must nation: n_name = 'GERMANY'
select ps_partkey, sum(ps_supplycost * ps_availqty) as value
from partsupp
join supplier on ps_suppkey = s_suppkey
join nation on s_nationkey = n_nationkey
where n_name = 'GERMANY' and ps_lot >= 0
group by ps_partkey
having
  sum(ps_supplycost * ps_availqty) > (
    select sum(stock.ps_supplycost * stock.ps_availqty) * 0.005
    from partsupp as stock
    join supplier as holder on stock.ps_suppkey = holder.s_suppkey
    join nation as home on holder.s_nationkey = home.n_nationkey
    where home.n_name = 'GERMANY' and stock.ps_lot >= 0
  )
order by value desc
