"""RoboMemory's agent: remembers, retrieves, plans several steps, criticises each but the first, and replans.

    agent = PlannerCriticAgent.for_world("alfworld")      # by rules: no model, no server; an `agents.agent.Agent`
    rollout(envs, [agent], [[0, 1, 2]])                   # or by hand:
    action = agent.begin("task 1", goal, first_observation)
    while not over:
        action = agent.act(answer_to_the_last_action)     # None: the agent says that the task is complete
    agent.end(won)                                        # episodic and semantic memory learn; the next task may begin

    agent = PlannerCriticAgent(planner=ChatPlanner(chat, robot.skills), critic=ChatCritic(chat))    # any body or world
    Runner(robot).run(agent, goal)                        # `agents.robot.runner`

Everything it knows comes through these calls, as text and pictures. One agent plays tasks in sequence without clearing
memory.

Source: RoboMemory 3.1, 3.3. A plan's first step is carried out without criticism, so that a critic who always objects
slows the agent down but cannot stop it: per action there is at most one replanning.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

from embodied_mem.agents.agent import Agent
from embodied_mem.agents.planner_critic.interfaces import Critic, Planner, Preprocessor, Situation, WorldRules
from embodied_mem.agents.planner_critic.plan import COMPLETE, Plan, PlanStep
from embodied_mem.agents.planner_critic.rules import NoReader, RulePreprocessor, TextRules
from embodied_mem.agents.planner_critic.situation_text import first_view
from embodied_mem.agents.robot.perceiver import Perceiver
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.images import Picture
from embodied_mem.language.seats import Seats
from embodied_mem.memory.arguments import shown
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.memory.pool import Pool, Reading
from embodied_mem.registry import load

MAX_SUMMARIES = 32
MAX_RECORDS = 32
"""Most records of the pool that a plan is made with."""
REVIEW_TIMEOUT_S = 600.0
"""Time for a verdict on a conflict. A slow model's verdict counts, so that a recording gives the same again."""
FIRST_VIEW = "observe"
"""Action under which memory keeps what is seen before the first command, where a perceiver looks at it."""


@dataclasses.dataclass(frozen=True)
class PlannerCriticConfig:
    """Parts of the agent; the ablations of RoboMemory's table 2 switch some off.

    Attributes:
        critic: whether steps are criticised; without, a plan is carried out to its end.
        spatial: whether there is spatial memory; without, the agent knows what the last steps' texts say.
        long_term: whether episodic and semantic memory exist and anything outlives a task.
        max_plan_steps: longest plan.
        budget_tokens: of what is retrieved for a plan; None for no limit.
        grammar: wording of commands, "0.4" or "0.3".
        retries: whether planners by rules try another reading of the goal when one was carried out and the task goes
            on; without, the agent ends the task itself then.
    """

    critic: bool = True
    spatial: bool = True
    long_term: bool = True
    max_plan_steps: int = 8
    budget_tokens: int | None = 400
    grammar: str = "0.4"
    retries: bool = True

    def __post_init__(self) -> None:
        if self.max_plan_steps < 1:
            raise InvalidInputError(f"max_plan_steps: expected >= 1, got {self.max_plan_steps}")

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules of `LifelongMemory` that take part."""
        return (
            *(("spatial",) if self.spatial else ()),
            "temporal",
            *(("episodic", "semantic") if self.long_term else ()),
        )


ABLATIONS = {
    "full": PlannerCriticConfig(),
    "no_critic": PlannerCriticConfig(critic=False),
    "no_spatial": PlannerCriticConfig(spatial=False),
    "no_long_term": PlannerCriticConfig(long_term=False),
}
"""The agent and its ablations, by name."""


@dataclasses.dataclass
class TaskRecord:
    """One task, for reports.

    Attributes:
        steps: actions given.
        plans: plans made, the first included.
        vetoes: steps that the critic refused.
        criticised: steps that it looked at.
        memory_s: time spent in updating and reading memories, beliefs included.
        think_s: time spent in planner, critic and preprocessor beyond that.
        actions: the commands.
        objections: the critic's words, by step number.
        seats: what the seats at a chat model were asked, see `language.seats`; empty without one.
    """

    steps: int = 0
    plans: int = 0
    vetoes: int = 0
    criticised: int = 0
    memory_s: float = 0.0
    think_s: float = 0.0
    actions: list[str] = dataclasses.field(default_factory=list)
    objections: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    seats: dict[str, float] = dataclasses.field(default_factory=dict)

    @property
    def replans(self) -> int:
        """Plans after the first."""
        return max(self.plans - 1, 0)


class PlannerCriticAgent(Agent):
    """One agent with its memories.

    Args:
        config: what it has.
        memory: to go on with; None for empty memories as `config` says.
        planner, critic: make plans and judge their steps.
        rules: how the world's texts become memories and beliefs; None for `TextRules`, which suit any texts.
        preprocessor: None for the one by rules.
        threads: whether summary and query are made side by side, as in the paper; None: only with a preprocessor of the
            caller's, which may wait for a model.
        seats: of its parts at a chat model, whose calls are counted; the memory's seat writes the memories that the
            agent makes, and reviews every conflict in them; the perceiver's looks at what these are told.
    """

    def __init__(
        self,
        config: PlannerCriticConfig | None = None,
        memory: LifelongMemory | None = None,
        *,
        planner: Planner,
        critic: Critic,
        rules: WorldRules | None = None,
        preprocessor: Preprocessor | None = None,
        threads: bool | None = None,
        seats: Seats | None = None,
    ):
        for name, part, call in (("planner", planner, "plan"), ("critic", critic, "review")):
            if not callable(getattr(part, call, None)):
                raise InvalidInputError(
                    f"{name}: expected an object with {call}(...), got {shown(part)}; give it that method"
                )
        self.config, self._seats = config or PlannerCriticConfig(), seats
        self.memory = memory if memory is not None else self._new_memory()
        self._fresh = memory is None
        self._planner, self._critic = planner, critic
        self._reading = Reading(MAX_RECORDS, self.config.budget_tokens, "summary", with_ages=True)
        self._rules: WorldRules = rules or TextRules()
        self._preprocessor = preprocessor or RulePreprocessor()
        self._threads = preprocessor is not None if threads is None else threads
        self.record = TaskRecord()
        self.plan: Plan | None = None
        self.found: Pool | None = None  # what the last command was decided with; None if nothing was asked
        self._begun = False  # whether `reset` has decided on a command that was not given yet: `_first`
        self._first: str | None = None

    @classmethod
    def for_world(
        cls, world: str, config: PlannerCriticConfig | None = None, memory: LifelongMemory | None = None, **parts: Any
    ) -> PlannerCriticAgent:
        """Return a world's agent by rules; `parts` replace some of its parts."""
        config = config or PlannerCriticConfig()
        return cls(config, memory, **{**load(world, "agent")(config), **parts})

    def _new_memory(self) -> LifelongMemory:
        chat, eyes = (self._seats.memory, self._seats.perceiver) if self._seats is not None else (None, None)
        more: dict[str, Any] = {} if eyes is None else {"perceiver": Perceiver(eyes), "reader": NoReader()}
        return LifelongMemory(
            modules=self.config.modules, chat=chat, reviews="all", review_timeout_s=REVIEW_TIMEOUT_S, **more
        )

    @property
    def believed(self) -> tuple[str, str]:
        """The belief of what it holds and where it is when it decided on the last command; for reports."""
        return self._working.before

    # One task.

    def reset(self, goal: str, observation: str, info: Mapping[str, Any]) -> None:
        commands = info.get("admissible_commands", ())
        self._first = self.begin(info.get("task_id", ""), goal, observation, commands, info.get("images", ()))
        self._begun = True

    def begin(
        self, task_id: str, goal: str, observation: str, commands: Sequence[str] = (), images: Sequence[Picture] = ()
    ) -> str | None:
        """Starts a task and returns the first command.

        Args:
            task_id: for the record only; nothing is read from it.
            goal: the instruction.
            observation: the text of the room.
            commands: the list of actions, where the world gives agents one.
            images: what the cameras show.
        """
        if not self.config.long_term and self._fresh:
            self.memory.close()
            self.memory = self._new_memory()
        self.record = TaskRecord()
        if self._seats is not None:
            self._seats.begin(task_id)
        start = time.perf_counter()
        self._working = self._rules.begin(self.memory, task_id, goal, observation, commands)
        self._working.images, self._commands = images, commands
        self.record.memory_s += time.perf_counter() - start
        self._begun = False
        self._query = goal
        self.plan = None
        self._steps: list[PlanStep] = []
        self._step = PlanStep("")
        if self.memory.perceiver is not None and (images or observation.strip()):
            self._step = PlanStep(FIRST_VIEW)
            self._take_note(FIRST_VIEW, first_view(observation))
            self._working.room = self._working.room or self._working.observation
        return self._decide()

    def act(self, observation: str, info: Mapping[str, Any] | None = None) -> str | None:
        """Return the next command, None for `COMPLETE`; `observation` answers the last one.

        After `reset` the first is the one decided there.
        """
        if self._begun:
            self._begun = False
            return self._first
        info = info or {}
        self._working.status, self._working.images = info.get("status"), info.get("images", ())
        self._take_note(self._working.action, observation)
        return self._decide()

    def end(self, won: bool, observation: str = "") -> None:
        """End the task; `observation` answers a command unknown to `act`."""
        if observation:
            self._working.status = None
            self._take_note(self._working.action, observation)
        start = time.perf_counter()
        self.memory.end_task(won)
        self.record.memory_s += time.perf_counter() - start
        if self._seats is not None:
            self.record.seats = self._seats.counts()

    def explained(self) -> dict[str, Any]:
        objections = self.record.objections
        # `record.steps` counts this command, an objection those before it.
        objected = bool(objections) and objections[-1][0] == self.record.steps - 1
        return {
            "plan": [step.command for step in self.plan.steps] if self.plan else [],
            "objection": objections[-1][1] if objected else "",
            **({"query": self._query} | self.found.as_json() if self.found is not None else {}),
        }

    # Perception.

    def _take_note(self, action: str, observation: str) -> None:
        working, view = self._working, None
        working.observation = observation
        before = working.refusals.get(action)
        start = time.perf_counter()
        if self.memory.perceiver is not None:  # it writes the summary, and others read what it saw
            self._rules.note(self.memory, working, self._step, observation)
            view = self.memory.perception
            working.observation = "\n".join(filter(None, [observation, view.text if view else ""]))
        middle = time.perf_counter()
        summary, self._query = self._preprocess(action, working.observation, view.summary if view else "")
        working.summaries = [*working.summaries[-MAX_SUMMARIES + 1 :], summary]
        end = time.perf_counter()
        if self.memory.perceiver is None:
            self._rules.note(self.memory, working, self._step, observation)
        if before is not None and working.refusals[action] == before:
            del working.refusals[action]  # this time it worked
        self.record.think_s += end - middle
        self.record.memory_s += middle - start + time.perf_counter() - end

    def _preprocess(self, action: str, observation: str, summary: str = "") -> tuple[str, str]:
        """Return (summary, query) of a step, without asking for a given summary."""
        turn = self._working.goal, action, observation, self._working.images
        if summary:
            return f"{action}: {summary}", self._preprocessor.query(*turn)
        if not self._threads:
            return self._preprocessor.summarise(*turn), self._preprocessor.query(*turn)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            calls = [pool.submit(ask, *turn) for ask in (self._preprocessor.summarise, self._preprocessor.query)]
            return calls[0].result(), calls[1].result()

    # Decision.

    def _decide(self) -> str | None:
        """Return the next step the critic passes, else a new plan's first."""
        situation, objection = None, ""
        self.found = None
        if self._steps and self.config.critic:
            situation = self._look(self._critic.needs_retrieval)
            start = time.perf_counter()
            objection = self._critic.review(self._steps[0], situation)
            self.record.think_s += time.perf_counter() - start
            self.record.criticised += 1
            if objection:
                self.record.vetoes += 1
                self.record.objections.append((self.record.steps, objection))
        if objection or not self._steps:
            situation = self._look(True, situation, objection)
            start = time.perf_counter()
            plan = self._planner.plan(situation)
            if not isinstance(plan, Plan):
                raise InvalidInputError(
                    f"planner: expected plan() to return Plan((PlanStep(...), ...)), got {shown(plan)}; wrap its steps"
                )
            self.plan = plan
            self.record.think_s += time.perf_counter() - start
            self.record.plans += 1
            self._steps = list(self.plan.steps)
            if not self._steps:
                raise InvalidInputError("planner: expected a plan of at least one step, got none")
        if situation is None:
            situation = self._look(False)
        self._working.before = situation.beliefs.held, situation.beliefs.at
        self._step = step = self._steps.pop(0)
        if step.command == COMPLETE.command:
            return None
        self._working.action = step.command
        self.record.steps += 1
        self.record.actions.append(step.command)
        return step.command

    def _look(self, retrieve: bool, known: Situation | None = None, objection: str = "") -> Situation:
        """Return the situation now; what `known` has is not read again."""
        start = time.perf_counter()
        beliefs = known.beliefs if known is not None else self._rules.beliefs(self.memory, self._working)
        working, pool = self._working, known.pool if known is not None else None
        if retrieve and pool is None:
            self.found = pool = self.memory.pool_of(None, working.room, self._reading, self._query)
        self.record.memory_s += time.perf_counter() - start
        return Situation(
            working.goal, working.room, beliefs, pool, self.memory, tuple(working.summaries), objection,
            working.images, self._commands, working.action, working.observation, dict(working.refusals),
            self.plan.progress if self.plan else "", tuple(self._steps[1:]),
        )  # fmt: skip
