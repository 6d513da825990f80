-- Which supplier of a region offers each part of one size and type at the lowest price?
-- may part: p_mfgr <> 'Manufacturer#2'
-- must part: p_mfgr <> 'Manufacturer#2' and p_size = 15 and p_type like '%BRASS' and p_partkey in (select ps_partkey from partsupp join supplier on s_suppkey = ps_suppkey join nation on n_nationkey = s_nationkey where n_regionkey = 3)
-- must supplier: s_nationkey in (select n_nationkey from nation where n_regionkey = 3) and s_suppkey in (select ps_suppkey from partsupp join part on p_partkey = ps_partkey where p_mfgr <> 'Manufacturer#2' and p_size = 15 and p_type like '%BRASS')
-- must nation: n_regionkey in (select r_regionkey from region where r_name = 'EUROPE')
-- must partsupp: ps_partkey in (select p_partkey from part where p_mfgr <> 'Manufacturer#2' and p_size = 15 and p_type like '%BRASS') and ps_suppkey in (select s_suppkey from supplier join nation on s_nationkey = n_nationkey where n_regionkey = 3)
-- partitioned by: n_name
select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
from part
join partsupp on p_partkey = ps_partkey
join supplier on s_suppkey = ps_suppkey
join nation on s_nationkey = n_nationkey
join region on n_regionkey = r_regionkey
where
  p_size = 15
  and p_type like '%BRASS'
  and p_mfgr <> 'Manufacturer#2'
  and r_name = 'EUROPE'
  and ps_supplycost = (
    select min(offer.ps_supplycost)
    from partsupp as offer
    join supplier as other on other.s_suppkey = offer.ps_suppkey
    join nation as home on other.s_nationkey = home.n_nationkey
    join region as around on home.n_regionkey = around.r_regionkey
    where offer.ps_partkey = p_partkey and around.r_name = 'EUROPE'
  )
order by s_acctbal desc, n_name, s_name, p_partkey
limit 100
