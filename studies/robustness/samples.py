"""Small files of every format that importers read."""

from __future__ import annotations

import json


def philly_job(job: str, start: str, end: str | None, gpus: int) -> dict[str, object]:
    """A job as msr-fiddle/philly-traces writes it."""
    detail = [{"ip": "m1", "gpus": [f"gpu{i}" for i in range(gpus)]}]
    attempts = [{"start_time": start, "end_time": end, "detail": detail}]
    return {"status": "Pass", "vc": "x", "jobid": job, "attempts": attempts, "submitted_time": start, "user": "u"}


GAVEL_LINE = "ResNet-18 (batch size 32)\tpython3 main.py\tfolder\t--num_steps\t1\t{}\t{}\t1\t-1.000000\t{}"
FILES: dict[str, str] = {
    "gavel": "\n".join(GAVEL_LINE.format(*cells) for cells in ((9000, 2, 0), (50000, 1, 30), (800, 4, 70))),
    "philly": "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,660.0,1,660.0,a\n"
    "2017-10-09 06:13:03,2951.0,2,5902.0,b\n2017-10-09 08:13:03,300.0,4,1200.0,b",
    "philly-log": json.dumps(
        [
            philly_job("a", "2017-10-07 01:12:09", "2017-10-07 01:13:23", 2),
            philly_job("b", "2017-10-07 01:13:09", "2017-10-07 02:13:23", 1),
            philly_job("c", "2017-10-07 02:13:09", None, 1),
        ],
        indent=1,
    ),
    "helios": "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "11,u,v,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0\n"
    "12,u,v,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0\n"
    "13,u,v,0,16,1,FAILED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-09 18:45:36,248,0",
    "pai": "a,worker,2.0,Terminated,1739162.0,1739900.0,600.0,29.3,50.0,MISC\n"
    "a,ps,1.0,Terminated,1739162.0,1739900.0,600.0,29.3,,\nb,tensorflow,1.0,Running,1739172.0,,600.0,29.3,100.0,V100\n"
    "c,tensorflow,1.0,Terminated,1739173.0,1739974.0,600.0,29.3,200.0,V100",
    "openb": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
    "scheduled_time\np0,12000,16384,1,1000,,LS,Running,0,12537,0\np1,6000,12288,1,460,,LS,Running,4270,12902,4280\n"
    "p2,6000,12288,0,0,,LS,Running,4270,12902,4280\np3,6000,12288,2,1000,,LS,Pending,4270,12902,",
    "pollux": "name,time,application,num_replicas,batch_size\ncifar10-0,107,cifar10,6,2048\nbert-1,110,bert,2,96\n"
    "ncf-2,135,ncf,1,32768",
    "tiresias": "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,1,0,606,vgg19,164,30\n"
    "1,8,30,133,resnet50,147,23\n2,2,53,157,vgg16,127,26",
    "csv": "JobID;num_gpu;run_s;submit;net\nx;2;120;2020-01-01 10:00:00;resnet50\ny;1;01:02:03;2020-01-01 10:01:00;\n"
    "z;4;1-00:00:00;2020-01-01T11:00:00+01:00;vgg16",
}
FILES["sia"] = FILES["pollux"]
COLUMNS: dict[str, object] = {"id": "JobID", "gpus": "num_gpu", "duration": "run_s", "arrival": "submit"}
"""What the columns of the plain table are called."""
