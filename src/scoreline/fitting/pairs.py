"""From an additive model to one with pairs of columns: a fit that tells which pairs can lower J."""

from dataclasses import replace

import numpy as np

from scoreline.features import Pairs
from scoreline.fitting.certified import CertifiedFit, with_cost
from scoreline.fitting.job import Job
from scoreline.fitting.plan import ThresholdRule
from scoreline.risks.registry import get_risk
from scoreline.scores import space_for


def with_pairs(job: Job, options: Pairs) -> Job:
    """Return the job with features of pairs, which starts at the additive optimum (eq. pair-gain).

    The additive fit takes its part of the time limit. Its slopes dR/dz say what a function of a pair could still explain.
    """
    if not job.solver.certified or job.validation is not None or job.control.journal is not None:
        raise ValueError(
            "features='pairs' starts from the slopes at a certified additive optimum: leave early_stopping and checkpoint out, "
            f"and use a certified solver, got solver={job.solver.name!r}"
        )
    parameters = job.parameters._replace(threshold="none", probability=False)
    plan = job.plan._replace(threshold=ThresholdRule.NONE, fallback=None)
    model = CertifiedFit(replace(job, parameters=parameters, plan=plan)).fit()
    if model.interruption is not None:
        raise model.interruption
    job.interim.newest = None  # coefficients without pairs
    rows, operator = job.rows, job.rows.operator
    z = rows.full_scores(operator.matvec(model.coef) + model.trained_intercept)
    risk = get_risk(model.risk, job.plan.measure)
    space = space_for(operator.scores)
    slopes = risk.prepare(rows.sign, with_cost(rows.weight, rows.sign, model.cost), space).value_grad(z)[1]
    paired = options.with_pairs(operator, slopes, rows.copies)
    paired.n_passes = operator.n_passes
    coef = np.append(model.coef, np.zeros(paired.shape[1] - operator.shape[1]))
    penalty = job.parameters.penalty_for(paired)
    return replace(job, rows=rows._replace(operator=paired), penalty=penalty, start=(coef, model.trained_intercept))
