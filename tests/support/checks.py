"""The problems' checkers for bare solution objects, as a user reaches them."""

from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.solution import parsed
from schedgap.formulations.g_vne.check import check_loads
from schedgap.formulations.g_vne.instance import GVneSolution
from schedgap.formulations.gpu_sharing.check_elastic import check_elastic
from schedgap.formulations.gpu_sharing.solution import ElasticSolution
from schedgap.formulations.hadar.check_forked import check_forked
from schedgap.formulations.hadar.solution import ForkedSolution

comm_contention = find_problem("comm-contention").check
ddl_cluster = find_problem("ddl-cluster").check
ddljs = find_problem("ddljs").check
g_vne = find_problem("g-vne").check
g_vne_loads = parsed(check_loads, GVneSolution)
gpu_sharing = find_problem("gpu-sharing").check
gpu_sharing_elastic = parsed(check_elastic, ElasticSolution)
hadar = find_problem("hadar").check
hadar_forked = parsed(check_forked, ForkedSolution)
rar_ddls = find_problem("rar-ddls").check
