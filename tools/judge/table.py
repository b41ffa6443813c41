"""How each name of a listing is read: kept, relaxed, restricted or unread, as data.

docs/reference/reading.md shows these tables on the site; readers ask them, so that nothing that bears on a
placement is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import NamedTuple

KEPT, RELAXED, RESTRICTED, UNREAD, IDLE = "kept", "relaxed", "restricted", "unread", "no bearing"
"""Ways to read a name; IDLE has no bearing on who fits where."""


class Row(NamedTuple):
    """One line of a table; of RELAXED and UNREAD `why` are the words in the line of a gang that it touches."""

    where: str
    names: str  # patterns with * for anything, separated by blanks
    way: str
    why: str


RELEVANT = re.compile(
    r"pod-?group|gang|topolog|quota|gpu|gres|slice|task-?group|podset|queue|fraction|\bmig\b|mig-|shard|numa|exclusiv"
    r"|reserv|affinity|spread|schedul|preempt|device|workload|claim|\bnpu\b|\btpu\b|accelerator|min-?(member|available)",
    re.IGNORECASE,
)
"""What a name looks like that may bear on a placement: unread where no table has it."""

_SPEC_IDLE = """activeDeadlineSeconds automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks
ephemeralContainers hostAliases hostIPC hostPID hostUsers hostname hostnameOverride imagePullSecrets nodeName
readinessGates restartPolicy securityContext serviceAccount serviceAccountName setHostnameAsFQDN
shareProcessNamespace subdomain terminationGracePeriodSeconds priorityClassName hostNetwork"""
_KUEUE_IDLE = """kueue.x-k8s.io/managed kueue.x-k8s.io/podset kueue.x-k8s.io/workload kueue.x-k8s.io/priority-class
kueue.x-k8s.io/tas kueue.x-k8s.io/retriable-in-group kueue.x-k8s.io/pod-group-fast-admission
kueue.x-k8s.io/pod-suspending-parent kueue.x-k8s.io/pod-group-pod-index kueue.x-k8s.io/pod-group-pod-index-label
kueue.x-k8s.io/job-uid kueue.x-k8s.io/cluster-queue-name kueue.x-k8s.io/local-queue-name kueue.x-k8s.io/queue-name
kueue.x-k8s.io/queue-name-label kueue.x-k8s.io/podset-unconstrained-topology kueue.x-k8s.io/pod-group-serving"""
_NOTES_IDLE = """scheduler.alpha.kubernetes.io/* run.ai/queue received-resource-type
runai-* run.ai/simple-queue-name volcano.sh/task-index
volcano.sh/task-spec volcano.sh/template-uid volcano.sh/job-version volcano.sh/job-retry-count volcano.sh/preemptable
yunikorn.apache.org/schedulingPolicyParameters yunikorn.apache.org/user.info
yunikorn.apache.org/allow-preemption yunikorn.apache.org/scheduled-at hami.io/vgpu-node hami.io/vgpu-time
hami.io/bind-phase hami.io/bind-time hami.io/*-devices-to-allocate hami.io/gpu-scheduler-policy
hami.io/node-scheduler-policy hami.io/*devices-allocated volcano.sh/devices-* volcano.sh/bind-* volcano.sh/vgpu-*
quota.scheduling.koordinator.sh/name koordinator.sh/qosClass koordinator.sh/priority nvidia.com/gpu.*
gang.scheduling.koordinator.sh/waiting-time gang.scheduling.koordinator.sh/total-number
scheduling.koordinator.sh/device-allocated gang.scheduling.koordinator.sh/mode leaderworkerset.sigs.k8s.io/worker-index
leaderworkerset.sigs.k8s.io/template-revision-hash grove.io/podcliqueset* grove.io/podcliquescalinggroup*
grove.io/pod-index jobset.sigs.k8s.io/* batch.kubernetes.io/* cluster-autoscaler.kubernetes.io/*
kubectl.kubernetes.io/* ray.io/* training.kubeflow.org/* workload.codeflare.dev/* app.kubernetes.io/*
scheduler.grove.io/podgang-role"""

KUBERNETES: tuple[Row, ...] = (
    Row("kind", "Node Pod", KEPT, "with all below"),
    Row("kind", "PodGroup", KEPT, "of the groups scheduling.k8s.io, scheduling.x-k8s.io, scheduling.volcano.sh,"
        " scheduling.run.ai, scheduling.sigs.k8s.io; of another one who bears its name is unread"),
    Row("kind", "PodGang", KEPT, "of Grove: groups with their minReplicas; packing below the gang is unread"),
    Row("kind", "Topology", KEPT, "of Kueue, KAI and Grove: the order of levels; beside the first, counted"),
    Row("kind", "Workload", KEPT, "of Kueue: pod sets that wait and have no pods; of scheduling.k8s.io: minCount"),
    Row("kind", "ClusterQueue LocalQueue", KEPT, "quota of what waits as a Workload, where one flavour has it, or for a"
        " Workload of one pod set several whose labels tell nodes apart, and the queue is in no cohort; else relaxed:"
        " its quota. Its admission checks, namespaces, StrictFIFO order and resources that it does not cover are"
        " relaxed, a stop is unread"),
    Row("kind", "ResourceFlavor", RELAXED, "the nodes of its queue's flavour; kept where a queue has several for a"
        " resource, or where all nodes have its labels"),
    Row("kind", "Job JobSet", KEPT, "suspended ones wait: as their Workload tells, else they are named and not judged"),
    Row("kind", "ResourceClaim ResourceClaimTemplate ResourceSlice DeviceClass", UNREAD, "it asks for a DRA claim"),
    Row("kind", "Queue", KEPT, "of Volcano and KAI: whether it or one above it has a limit, which is not read itself"),
    Row("kind", "Cohort", RELAXED, "quota of queues"),
    Row("kind", "ElasticQuota", RELAXED, "the ElasticQuota of its namespace, under Koordinator and scheduler-plugins"),
    Row("kind", "ResourceQuota LimitRange PriorityClass", IDLE, "they act when a pod is made, and are in its fields"),
    Row("kind", "PodDisruptionBudget", IDLE, "kube-scheduler ends pods all the same where nothing else helps"),
    Row("kind", "Deployment ReplicaSet StatefulSet DaemonSet CronJob ReplicationController Service ConfigMap Event"
        " Namespace Secret ServiceAccount Endpoints EndpointSlice Ingress PersistentVolume PersistentVolumeClaim"
        " StorageClass CSINode Lease ControllerRevision HorizontalPodAutoscaler PodTemplate RayCluster RayJob"
        " PyTorchJob MPIJob LeaderWorkerSet PodClique PodCliqueSet AdmissionCheck WorkloadPriorityClass", IDLE,
        "what they make is listed as pods or groups"),
    Row("pod", "containers initContainers overhead resources", KEPT, "what it asks for, exactly"),
    Row("pod", "nodeSelector tolerations affinity.nodeAffinity", KEPT, "which nodes take it"),
    Row("pod", "priority preemptionPolicy schedulerName schedulingGroup schedulingGates", KEPT,
        "who is first, whom it may end, whose gangs it has"),
    Row("pod", "workloadRef", KEPT, "gangs of Kubernetes 1.35: a Workload's pod group"),
    Row("pod", "topologySpreadConstraints", RELAXED, "its spread rule"),
    Row("pod", "affinity.podAffinity", RELAXED, "its affinity to other pods"),
    Row("pod", "affinity.podAntiAffinity", RELAXED, "its anti-affinity to other pods; on one node it is kept where it"
        " means its own gang alone"),
    Row("pod", "hostPort", RELAXED, "its host ports"),
    Row("pod", "volumes", RELAXED, "the nodes of its volumes"),
    Row("pod", "resourceClaims", UNREAD, "it asks for a DRA claim"),
    Row("container", "name image command args workingDir ports envFrom env resources resizePolicy restartPolicy"
        " restartPolicyRules volumeMounts volumeDevices livenessProbe readinessProbe startupProbe lifecycle"
        " terminationMessagePath terminationMessagePolicy imagePullPolicy securityContext stdin stdinOnce tty", IDLE,
        "they bear on how it runs; resources and host ports are read"),
    Row("pod", "runtimeClassName os", IDLE, "what they ask of nodes is copied into the pod's selector and tolerations"),
    Row("pod", " ".join(_SPEC_IDLE.split()), IDLE, "they bear on how it runs"),
    Row("scheduler", "default-scheduler kai-scheduler hami-scheduler volcano yunikorn koord-scheduler"
        " scheduler-plugins-scheduler grove-scheduler", KEPT, "a pod without a gang of theirs waits alone"),
    Row("note", "kueue.x-k8s.io/pod-group-name kueue.x-k8s.io/pod-group-total-count kueue.x-k8s.io/role-hash"
        " kueue.x-k8s.io/podset-group-name kueue.x-k8s.io/podset-required-topology"
        " kueue.x-k8s.io/podset-preferred-topology", KEPT, "Kueue's gangs, their size, sets and levels"),
    Row("note", "kueue.x-k8s.io/podset-slice-required-topology kueue.x-k8s.io/podset-slice-size", KEPT,
        "slices on one node of whole GPUs; else relaxed: its slices"),
    Row("note", "kueue.x-k8s.io/podset-slice-required-topology-constraints", RELAXED, "its slices"),
    Row("note", " ".join(_KUEUE_IDLE.split()), IDLE, "an ungated pod has its quota"),
    Row("note", "scheduling.k8s.io/group-name volcano.sh/job-name", KEPT, "Volcano's gangs"),
    Row("note", "scheduling.x-k8s.io/pod-group pod-group.scheduling.sigs.k8s.io*", KEPT, "gangs of coscheduling"),
    Row("note", "pod-group-name", KEPT, "KAI-Scheduler's gangs"),
    Row("note", "kai.scheduler/subgroup-name", KEPT, "groups of a gang of KAI-Scheduler, each with its minMember"),
    Row("note", "gpu-fraction gpu-memory gpu-fraction-num-devices", KEPT, "KAI-Scheduler's parts of a GPU, or of"
        " each of several; memory where all nodes tell nvidia.com/gpu.memory"),
    Row("note", "kai.scheduler/topology kai.scheduler/topology-*", UNREAD, "its topology of KAI-Scheduler"),
    Row("note", "yunikorn.apache.org/task-group-name yunikorn.apache.org/task-groups yunikorn.apache.org/app-id"
        " yunikorn.apache.org/placeholder applicationId", KEPT, "YuniKorn's gangs"),
    Row("note", "gang.scheduling.koordinator.sh/name gang.scheduling.koordinator.sh/min-available", KEPT,
        "Koordinator's gangs"),
    Row("note", "gang.scheduling.koordinator.sh/groups", UNREAD, "its gang waits for other gangs"),
    Row("note", "scheduling.koordinator.sh/device-allocate-hint scheduling.koordinator.sh/device-joint-allocate"
        " scheduling.koordinator.sh/gpu-partition-spec scheduling.koordinator.sh/reservation-affinity"
        " gang.scheduling.koordinator.sh/network-topology-spec", UNREAD, "its rules of Koordinator for devices"),
    Row("note", "leaderworkerset.sigs.k8s.io/name leaderworkerset.sigs.k8s.io/group-index"
        " leaderworkerset.sigs.k8s.io/group-key leaderworkerset.sigs.k8s.io/size", KEPT, "gangs of LeaderWorkerSet"),
    Row("note", "leaderworkerset.sigs.k8s.io/exclusive-topology"
        " leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology", RELAXED, "the domain that it has for itself"),
    Row("note", "leaderworkerset.sigs.k8s.io/*", IDLE, "names of its groups"),
    Row("note", "grove.io/podgang grove.io/podclique", KEPT, "Grove's gangs"),
    Row("note", "hami.io/use-gputype nvidia.com/use-gputype nvidia.com/nouse-gputype nvidia.com/use-gpuuuid"
        " nvidia.com/nouse-gpuuuid nvidia.com/vgpu-mode", UNREAD, "its choice of cards"),
    Row("note", "volcano.sh/vgpu-mode volcano.sh/numa-topology-policy scheduling.volcano.sh/numa*", UNREAD,
        "its rules of Volcano for devices"),
    Row("note", "kai.scheduler/queue runai/queue scheduling.volcano.sh/queue-name volcano.sh/queue-name queue"
        " yunikorn.apache.org/queue", KEPT, "the name of its queue; one that is not listed is read as without a limit,"
        " and told"),
    Row("note", " ".join(_NOTES_IDLE.split()), IDLE, "queues, indices, what a scheduler wrote down"),
    Row("resource", "cpu memory ephemeral-storage hugepages-* pods attachable-volumes-*", KEPT, "exactly"),
    Row("resource", "nvidia.com/gpu amd.com/gpu", KEPT, "devices, each vendor's for itself"),
    Row("resource", "gpu.intel.com/* habana.ai/gaudi google.com/tpu aws.amazon.com/neuron* huawei.com/Ascend910"
        " qualcomm.com/qaic", KEPT, "counted"),
    Row("resource", "nvidia.com/mig-*", KEPT, "slices that are made, counted by name"),
    Row("resource", "nvidia.com/gpu.shared", UNREAD, "it asks for time slices of GPUs"),
    Row("resource", "nvidia.com/gpumem nvidia.com/gpumem-percentage", KEPT, "HAMi's parts of one card"),
    Row("resource", "nvidia.com/gpucores", RELAXED, "its share of a card's cores"),
    Row("resource", "volcano.sh/vgpu-number volcano.sh/vgpu-memory volcano.sh/vgpu-memory-percentage", KEPT,
        "Volcano's parts of one card"),
    Row("resource", "volcano.sh/vgpu-cores", RELAXED, "its share of a card's cores"),
    Row("resource", "koordinator.sh/gpu koordinator.sh/gpu-core koordinator.sh/gpu-memory-ratio", KEPT,
        "Koordinator's parts of one card, or whole ones"),
    Row("resource", "koordinator.sh/gpu-memory koordinator.sh/gpu.shared", UNREAD, "its memory on a card"),
    Row("resource", "*/gpu", KEPT, "devices, where there are none of NVIDIA or AMD; else counted"),
    Row("resource", "rdma/* nvidia.com/*nic* intel.com/* smarter-devices/* kubevirt.io/* devices.kubevirt.io/*"
        " vpc.amazonaws.com/* *rdma* *sriov*", KEPT, "counted"),
    Row("group", "minMember minCount minResources schedulingPolicy queue priorityClassName scheduleTimeoutSeconds"
        " podGroupTemplateRef priority preemptMinRuntime resourceClaims disruptionMode podgroups priorityClassRef"
        " backoffLimit markUnschedulable schedulingBackoff preemptibility terminationDelay reuseReservationRef", KEPT,
        "its fewest pods"),
    Row("group", "schedulingConstraints topologyConstraint", KEPT, "one level that all its pods share, or prefer"),
    Row("group", "subGroups", KEPT, "groups with their minMember and required levels"),
    Row("subgroup", "name minMember minReplicas parent topologyConstraint podReferences", KEPT,
        "groups in groups; minima where one at most has more pods than it needs, all equal, and no pod of its gang runs"
        ", else unread; levels that they prefer are left out and counted"),
    Row("subgroup", "minSubGroup", UNREAD, "its groups have fewest pods of their own"),
    Row("group", "networkTopology", RELAXED, "its network topology"),
    Row("group", "minTaskMember subGroupPolicy minSubGroup", UNREAD, "its groups have fewest pods of their own"),
    Row("group", "topologyConstraintGroupConfigs", KEPT, "levels of several of Grove's groups together"),
    Row("workload", "podSets queueName active priority", KEPT, "what waits without pods"),
    Row("workload", "priorityClassName priorityClassRef priorityClassSource maximumExecutionTimeSeconds"
        " preemptionGates", IDLE, "they bear on when"),
    Row("workload", "podGroups podGroupTemplates controllerRef", KEPT, "of scheduling.k8s.io"),
    Row("pod set", "name count template topologyRequest minCount", KEPT, "its pods, and the fewest of them"),
    Row("topology request", "required preferred unconstrained podSetGroupName podIndexLabel subGroupIndexLabel"
        " subGroupCount podSetSliceRequiredTopology podSetSliceSize", KEPT, "levels and slices"),
    Row("topology request", "podsetSliceRequiredTopologyConstraints", RELAXED, "its slices"),
    Row("node", "taints unschedulable", KEPT, "which pods it takes"),
    Row("node", "podCIDR podCIDRs providerID externalID configSource", IDLE, "addresses"),
    Row("node note", "hami.io/node-nvidia-register volcano.sh/node-vgpu-register", KEPT, "its cards and their memory"),
    Row("node note", "hami.io/* volcano.sh/* nvidia.com/* node.koordinator.sh/* scheduling.koordinator.sh/*"
        " csi.volume.kubernetes.io/* *.kubernetes.io/* kai.scheduler/* run.ai/* yunikorn.apache.org/*", IDLE,
        "labels of nodes act through selectors and levels"),
)  # fmt: skip

_SLURM_KEYS = """account accrue_time admin_comment allocating_node association_id batch_features
batch_flag batch_host billable_tres burst_buffer burst_buffer_state cluster cluster_features command
comment container container_id core_spec cpu_frequency_governor cpu_frequency_maximum
cpu_frequency_minimum cpus_per_tres cron current_working_directory deadline delay_boot
derived_exit_code eligible_time end_time exit_code extra failed_node federation_origin
federation_siblings_active federation_siblings_viable fed_origin_str fed_siblings_active_str
fed_siblings_viable_str flags group_id group_name gres_detail het_job_id_set het_job_offset
job_size_str kill_on_invalid_dependency last_sched_evaluation licenses_allocated mail_type mail_user
maximum_switch_wait_time max_cpus mcs_label memory_per_tres minimum_switch name network nice
ntasks_per_tres origin_cluster pre_sus_time preempt_time preemptable_time prefer priority_by_partition
profile qos reboot requeue requeue_cnt resize_time restart_cnt scheduled_nodes selinux_context
show_flags sockets_per_board standard_error standard_input standard_output start_time stderr_expanded
stdin_expanded stdout_expanded step_id stepmgr_enabled submit_line submit_time
suspend_time system_comment threads time time_limit time_minimum total_cpus total_nodes tres_bind
tres_freq user_id user_name wait4switch wckey job_resources minimum_cpus_per_node memory_per_cpu
memory_per_node tres_alloc_str tasks_per_core minimum_tmp_disk_per_node required_nodes_set power
assoc_id priority_str partition_str array_job_id array_task_id billing billable_tres_set cpus_per_task
tasks_per_board last_sched_eval pack_job_id nodes_str hold pn_min_memory resv_id state_reason_str"""
SLURM: tuple[Row, ...] = (
    Row("job", "job_id job_state state_reason state_description nodes partition priority cpus node_count tasks"
        " max_nodes het_job_id tasks_per_node array_task_string array_max_tasks shared", KEPT,
        "who waits, who runs, where"),
    Row("job", "tres_req_str tres_alloc_str tres_per_node tres_per_job tres_per_task gres_detail", KEPT,
        "GPUs, their types, MIG slices by name, shards and mps of one GPU; the first that names them"),
    Row("job", "excluded_nodes required_nodes", KEPT, "which nodes take it"),
    Row("job", "memory_per_node memory_per_cpu cpus_per_task", RESTRICTED, "of jobs on several nodes: equal shares"),
    Row("job", "features", KEPT, "names joined by & of nodes' ActiveFeatures; else relaxed: its features"),
    Row("job", "required_switches network segment_size", RELAXED, "its switches"),
    Row("job", "contiguous", RELAXED, "neighbouring nodes"),
    Row("job", "licenses", RELAXED, "its licenses"),
    Row("job", "exclusive", RELAXED, "a node for itself"),
    Row("job", "minimum_tmp_disk_per_node", RELAXED, "its local disk"),
    Row("job", "core_spec thread_spec tasks_per_socket sockets_per_node threads_per_core"
        " cores_per_socket", RELAXED, "its tasks, cores and sockets of a node"),
    Row("job", "tres_per_socket", UNREAD, "GPUs by socket"),
    Row("job", "resv_name", UNREAD, "it is in a reservation, whose nodes are not listed"),
    Row("job", "dependency", IDLE, "a job that waits for another is left out by its reason"),
    Row("job", " ".join(_SLURM_KEYS.split()), IDLE, "names, moments, accounts"),
    Row("gres", "gpu shard mps", KEPT, "devices, and parts of one"),
    Row("gres", "*", RELAXED, "other devices"),
    Row("node", "NodeName Gres State Partitions CPUTot CPUEfctv CPUAlloc RealMemory AllocMem AllocTRES ActiveFeatures"
        " name gres gres_used state partitions cpus effective_cpus alloc_cpus real_memory alloc_memory tres_used"
        " active_features features", KEPT, "what it has, what is taken"),
    Row("node", "*", IDLE, "addresses, moments, versions, what a person wrote"),
)  # fmt: skip

RAY: tuple[Row, ...] = (
    Row("group", "placement_group_id state strategy bundles bundles_to_node_id", KEPT, "a gang of bundles"),
    Row("group", "stats", KEPT, "when it was asked for"),
    Row("group", "strategy SPREAD", KEPT, "a wish, no condition"),
    Row("group", "name creator_job_id is_detached creator_job_dead creator_actor_id creator_actor_dead ray_namespace"
        " placement_group_name", IDLE, "names"),
    Row("group", "_soft_target_node_id soft_target_node_id max_cpu_fraction_per_node", UNREAD, "its target node"),
    Row("group", "bundle_label_selector label_selector topology_strategy", UNREAD, "its labels of nodes"),
    Row("bundle", "unit_resources node_id", KEPT, "what it asks for and where it is"),
    Row("bundle", "bundle_id", IDLE, "a number"),
    Row("bundle", "label_selector", UNREAD, "its labels of nodes"),
    Row("node", "node_id state resources_total", KEPT, "what a node has"),
    Row("node", "labels", KEPT, "no condition of a group that is read asks for them"),
    Row("node", "*", IDLE, "addresses and moments"),
)  # fmt: skip
OPENB: tuple[Row, ...] = (
    Row("pod", "name cpu_milli memory_mib num_gpu gpu_milli gpu_spec", KEPT, "what it asks for"),
    Row("pod", "qos pod_phase creation_time deletion_time scheduled_time", IDLE, "nothing has been placed yet"),
    Row("node", "sn cpu_milli memory_mib gpu model", KEPT, "what it has"),
)  # fmt: skip
OWN: tuple[Row, ...] = (
    Row("instance", "every field of gang-placement", KEPT, "the instance is the world; an unknown key is refused"),
    Row("instance", "reference_decision", KEPT, "what the scheduler placed"),
)  # fmt: skip
TABLES = {"kubernetes": KUBERNETES, "slurm": SLURM, "ray": RAY, "openb": OPENB, "own": OWN}


@cache
def _patterns(form: str, where: str) -> tuple[dict[str, Row], Sequence[tuple[str, Row]]]:
    """The rows of a place by name, and those with patterns."""
    every = [(name, row) for row in TABLES[form] if row.where == where for name in row.names.split()]
    return dict(reversed(every)), [(name, row) for name, row in every if "*" in name]


@cache
def row_of(form: str, where: str, name: str) -> Row | None:
    """The line of a table that has a name; None where none has it."""
    exact, patterns = _patterns(form, where)
    return exact.get(name) or next((row for pattern, row in patterns if fnmatchcase(name, pattern)), None)


@cache
def way_of(form: str, where: str, name: str, closed: bool = False) -> Row:
    """How a name is read; an unknown one is unread where it looks as if it bore on a placement, or the place is closed.

    Parameters
    ----------
    closed : every name that no line has is unread
    """
    row = row_of(form, where, name)
    if row is not None:
        return row
    way = UNREAD if closed or RELEVANT.search(name) else IDLE
    return Row(where, name, way, f"{name[:80]} is not known")


def tables() -> Iterator[str]:
    """The tables as lines of Markdown, a section a format."""
    for form, rows in TABLES.items():
        yield from (f"**{form}**", "", "| in | name | read | |", "|---|---|---|---|")
        for row in rows:
            names = ", ".join(f"`{name}`" for name in row.names.split()) if row.where != "instance" else row.names
            yield f"| {row.where} | {names} | {row.way} | {row.why} |"
        yield ""
