"""The app that `openenv.yaml` names: `uvicorn server:app`."""

from embodied_mem.serve.openenv import app as served

app = served("alfworld", max_steps=50)
