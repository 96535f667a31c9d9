#!/bin/bash
# sbatch examples/clusters/slurm.sh: two nodes of eight GPUs of 96 GB, a process per GPU; all nodes see /shared.
# Before the time limit, or preempted, the run writes a checkpoint and ends with status 143; then it is queued again.
#SBATCH --job-name=embodied-mem
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=24:00:00
#SBATCH --signal=TERM@600
#SBATCH --requeue
#SBATCH --open-mode=append

srun --kill-on-bad-exit=1 python experiments/train.py --config=grpo_tpu \
  --mesh.data 2 --mesh.fsdp 8 --mesh.tensor 1 --mesh.sampling-tensor 4 \
  --model.weights /shared/weights --run_dir "/shared/runs/slurm"
status=$?
if [ "$status" -eq 143 ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
