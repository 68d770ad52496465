"""Functions of scikit-learn, SciPy and a NumPy GPT, unmodified, annotated from outside; and changes of those annotations.

    python -m tests.shape.library [FILE_OF_A_NUMPY_GPT]

The GPT is a file with functions of these names, such as gpt2.py of github.com/jaymody/picoGPT; if none is given, our own.
"""
import importlib, importlib.util, random, sys, warnings
from collections import Counter
from pathlib import Path
import numpy as np
from bendml.shape import Arr, Bool, Dim, Int, Mat, ShapeError, Vec, dims, typed
from bendml.shape.annotations import ArraySpec, DictSpec, TupleSpec, SizeSpec, read_annotation
from bendml.shape.facts import _holds, parse_claim
from bendml.shape.values import arrays_of
from bendml.shape.sizes import evaluate, names_of

n, m, d, k, p, q, T, C, V, N = dims('n m d k p q T C V N')
S = ArraySpec(())
linear = lambda a, b: {'w': Mat[a, b], 'b': Vec[b]}
norm = {'g': Vec[C], 'b': Vec[C]}
mlp = {'c_fc': linear(C, 4*C), 'c_proj': linear(4*C, C)}
attn = {'c_attn': linear(24, 72), 'c_proj': linear(24, 24)}
norm24 = {'g': Vec[24], 'b': Vec[24]}
mlp24 = {'c_fc': linear(24, 96), 'c_proj': linear(96, 24)}
block = {'mlp': mlp24, 'attn': attn, 'ln_1': norm24, 'ln_2': norm24}

LIBRARY = [  # module, function, annotations, options of typed
    ('sklearn.utils.extmath', 'squared_norm', {'x': Mat[n, m], 'return': S}, {}),
    ('sklearn.utils.extmath', '_deterministic_vector_sign_flip', {'u': Mat[n, m], 'return': Mat[n, m]}, {}),
    ('sklearn.utils._mask', 'indices_to_mask', {'indices': Int[Vec[k]], 'mask_length': SizeSpec(n), 'return': Bool[Vec[n]]}, {'where': 'indices < n'}),
    ('sklearn.cross_decomposition._pls', '_center_scale_xy', {'X': Mat[n, p], 'y': Mat[n, q], 'return': (Mat[n, p], Mat[n, q], Vec[p], Vec[q], Vec[p], Vec[q])}, {}),
    ('sklearn.cross_decomposition._pls', '_svd_flip_1d', {'u': Vec[n], 'v': Vec[m]}, {}),
    ('sklearn.decomposition._fastica', '_logcosh', {'x': Mat[n, m], 'return': (Mat[n, m], Vec[n])}, {'known': {'fun_args': {}}}),
    ('sklearn.decomposition._fastica', '_exp', {'x': Mat[n, m], 'return': (Mat[n, m], Vec[n])}, {'known': {'fun_args': {}}}),
    ('sklearn.decomposition._fastica', '_cube', {'x': Mat[n, m], 'return': (Mat[n, m], Vec[n])}, {'known': {'fun_args': {}}}),
    ('sklearn.decomposition._fastica', '_gs_decorrelation', {'w': Vec[n], 'W': Mat[k, n], 'j': SizeSpec(Dim('j')), 'return': Vec[n]}, {'where': 'j <= k'}),
    ('sklearn.decomposition._fastica', '_sym_decorrelation', {'W': Mat[n, n], 'return': Mat[n, n]}, {}),
    ('sklearn.feature_extraction.image', '_make_edges_3d', {'n_x': SizeSpec(n), 'n_y': SizeSpec(m), 'n_z': SizeSpec(k)}, {}),
    ('sklearn.metrics._ranking', '_dcg_sample_scores', {'y_true': Mat[n, m], 'y_score': Mat[n, m], 'return': Vec[n]}, {}),
    ('sklearn.metrics._ranking', '_tie_averaged_dcg', {'y_true': Vec[n], 'y_score': Vec[n], 'discount_cumsum': Vec[n], 'return': S}, {}),
    ('sklearn.neural_network._base', 'squared_loss', {'y_true': Mat[n, m], 'y_pred': Mat[n, m], 'return': S}, {}),
    ('sklearn.neural_network._base', 'inplace_softmax', {'X': Mat[n, m]}, {}),
    ('sklearn.neural_network._base', 'inplace_tanh_derivative', {'Z': Mat[n, m], 'delta': Mat[n, m]}, {}),
    ('sklearn.neural_network._base', 'binary_log_loss', {'y_true': Mat[n, m], 'y_prob': Mat[n, m], 'return': S}, {}),
    ('sklearn.covariance._graph_lasso', 'alpha_max', {'emp_cov': Mat[n, n], 'return': S}, {}),
    ('sklearn.covariance._graph_lasso', '_dual_gap', {'emp_cov': Mat[n, n], 'precision_': Mat[n, n], 'alpha': float, 'return': S}, {}),
    ('sklearn.linear_model._theil_sen', '_modified_weiszfeld_step', {'X': Mat[n, d], 'x_old': Vec[d], 'return': Vec[d]}, {}),
    ('sklearn.feature_selection._univariate_selection', '_chisquare', {'f_obs': Mat[n, m], 'f_exp': Mat[n, m]}, {}),
    ('scipy.linalg._expm_frechet', '_diff_pade3', {'A': Mat[n, n], 'E': Mat[n, n], 'ident': Mat[n, n], 'return': (Mat[n, n],)*4}, {}),
    ('scipy.linalg._expm_frechet', '_diff_pade7', {'A': Mat[n, n], 'E': Mat[n, n], 'ident': Mat[n, n], 'return': (Mat[n, n],)*4}, {}),
    ('scipy.optimize._optimize', 'rosen', {'x': Vec[n], 'return': S}, {}),
    ('scipy.optimize._optimize', 'vecnorm', {'x': Vec[n], 'return': S}, {}),
    ('scipy.optimize._lsq.common', 'build_quadratic_1d', {'J': Mat[m, n], 'g': Vec[n], 's': Vec[n], 'return': (S, S)}, {}),
    ('scipy.optimize._lsq.common', 'evaluate_quadratic', {'J': Mat[m, n], 'g': Vec[n], 's': Mat[k, n], 'return': Vec[k]}, {}),
    ('scipy.optimize._lsq.common', 'step_size_to_bound', {'x': Vec[n], 's': Vec[n], 'lb': Vec[n], 'ub': Vec[n], 'return': (S, Vec[n])}, {}),
    ('scipy.optimize._lsq.common', 'find_active_constraints', {'x': Vec[n], 'lb': Vec[n], 'ub': Vec[n], 'return': Vec[n]}, {}),
    ('scipy.optimize._lsq.common', 'make_strictly_feasible', {'x': Vec[n], 'lb': Vec[n], 'ub': Vec[n], 'return': Vec[n]}, {}),
    ('scipy.optimize._lsq.common', 'CL_scaling_vector', {'x': Vec[n], 'g': Vec[n], 'lb': Vec[n], 'ub': Vec[n], 'return': (Vec[n], Vec[n])}, {}),
    ('scipy.optimize._lsq.common', 'reflective_transformation', {'y': Vec[n], 'lb': Vec[n], 'ub': Vec[n], 'return': (Vec[n], Vec[n])}, {}),
    ('scipy.optimize._trustregion_exact', 'gershgorin_bounds', {'H': Mat[n, n], 'return': (S, S)}, {}),
    ('scipy.spatial.transform._rotation_spline', '_create_skew_matrix', {'x': Mat[n, 3], 'return': Arr[n, 3, 3]}, {}),
    ('scipy.spatial.transform._rotation_spline', '_angular_rate_to_rotvec_dot_matrix', {'rotvecs': Mat[n, 3], 'return': Arr[n, 3, 3]}, {}),
    ('scipy.spatial.transform._rotation_spline', '_angular_acceleration_nonlinear_term', {'rotvecs': Mat[n, 3], 'rotvecs_dot': Mat[n, 3], 'return': Mat[n, 3]}, {}),
    ('scipy.spatial._spherical_voronoi', 'calculate_solid_angles', {'R': Arr[n, 3, 3], 'return': Vec[n]}, {}),
    ('scipy.stats._mgc', '_two_sample_transform', {'u': Mat[n, p], 'v': Mat[m, p], 'return': (Mat['n+m', p], Mat['n+m', 1])}, {}),
    ('scipy.optimize._remove_redundancy', '_row_count', {'A': Mat[n, m], 'return': Vec[n]}, {}),
    ('scipy.signal._signaltools', '_cmplx_sort', {'p': Vec[n], 'return': (Vec[n], Vec[n])}, {}),
    # From here on chosen after the check was written, and before it had seen them: 37 of these 44 were accepted at once.
    ('sklearn.cross_decomposition._pls', '_get_first_singular_vectors_svd', {'X': Mat[n, p], 'y': Mat[n, q], 'return': (Vec[p], Vec[q])}, {}),
    ('sklearn.datasets._rcv1', '_find_permutation', {'a': Vec[n], 'b': Vec[n], 'return': Int[Vec[n]]}, {}),
    ('sklearn.datasets._rcv1', '_inverse_permutation', {'p': Int[Vec[n]], 'return': Int[Vec[n]]}, {}),
    ('sklearn.decomposition._factor_analysis', '_ortho_rotation', {'components': Mat[n, m], 'return': Mat[m, n]}, {}),
    ('sklearn.decomposition._nmf', 'trace_dot', {'X': Mat[n, m], 'Y': Mat[n, m], 'return': S}, {}),
    ('sklearn.mixture._bayesian_mixture', '_log_wishart_norm', {'degrees_of_freedom': Vec[k], 'log_det_precisions_chol': Vec[k], 'n_features': SizeSpec(d), 'return': Vec[k]}, {}),
    ('sklearn.neural_network._base', 'inplace_logistic_derivative', {'Z': Mat[n, m], 'delta': Mat[n, m]}, {}),
    ('sklearn.neural_network._base', 'inplace_relu_derivative', {'Z': Mat[n, m], 'delta': Mat[n, m]}, {}),
    ('sklearn.neural_network._base', 'log_loss', {'y_true': Mat[n, m], 'y_prob': Mat[n, m], 'return': S}, {}),
    ('sklearn.neural_network._base', 'poisson_loss', {'y_true': Mat[n, m], 'y_pred': Mat[n, m], 'return': S}, {}),
    ('scipy.integrate._bvp', 'stacked_matmul', {'a': Arr[n, m, k], 'b': Arr[n, k, p], 'return': Arr[n, m, p]}, {}),
    ('scipy.integrate._ivp.bdf', 'change_D', {'D': Mat[N, n], 'order': SizeSpec(k), 'factor': float}, {'where': 'k < N'}),
    ('scipy.integrate._ivp.bdf', 'compute_R', {'order': SizeSpec(k), 'factor': float, 'return': Mat['k+1', 'k+1']}, {}),
    ('scipy.integrate._ivp.common', 'norm', {'x': Vec[n], 'return': S}, {}),
    ('scipy.integrate._quadrature', '_cumulative_simpson_equal_intervals', {'y': Mat[n, 'm+2'], 'dx': Mat[n, 'm+1'], 'return': Mat[n, m]}, {}),
    ('scipy.integrate._quadrature', '_cumulative_simpson_unequal_intervals', {'y': Mat[n, 'm+2'], 'dx': Mat[n, 'm+1'], 'return': Mat[n, m]}, {}),
    ('scipy.interpolate._bsplines', '_coeff_of_divided_diff', {'x': Vec[n], 'return': Vec[n]}, {}),
    ('scipy.linalg._expm_frechet', '_diff_pade5', {'A': Mat[n, n], 'E': Mat[n, n], 'ident': Mat[n, n], 'return': (Mat[n, n],)*4}, {}),
    ('scipy.linalg._expm_frechet', '_diff_pade9', {'A': Mat[n, n], 'E': Mat[n, n], 'ident': Mat[n, n], 'return': (Mat[n, n],)*4}, {}),
    ('scipy.linalg._solvers', '_solve_discrete_lyapunov_direct', {'a': Mat[n, n], 'q': Mat[n, n], 'return': Mat[n, n]}, {}),
    ('scipy.odr._models', '_poly_fcn', {'B': Vec['k+1'], 'x': Vec[n], 'powers': Mat[k, 1], 'return': Vec[n]}, {}),
    ('scipy.odr._models', '_lin_fjd', {'B': Vec['k+1'], 'x': Mat[k, n], 'return': Mat[k, n]}, {}),
    ('scipy.optimize._linprog_ip', '_get_step', {'x': Vec[n], 'd_x': Vec[n], 'z': Vec[m], 'd_z': Vec[m], 'tau': float, 'd_tau': float, 'kappa': float, 'd_kappa': float, 'alpha0': float, 'return': S}, {}),
    ('scipy.optimize._lsq.bvls', 'compute_kkt_optimality', {'g': Vec[n], 'on_bound': Vec[n], 'return': S}, {}),
    ('scipy.optimize._lsq.common', 'in_bounds', {'x': Vec[n], 'lb': Vec[n], 'ub': Vec[n], 'return': S}, {}),
    ('scipy.optimize._lsq.common', 'intersect_trust_region', {'x': Vec[n], 's': Vec[n], 'Delta': float, 'return': (S, S)}, {}),
    ('scipy.optimize._lsq.dogbox', 'find_intersection', {'x': Vec[n], 'tr_bounds': Vec[n], 'lb': Vec[n], 'ub': Vec[n], 'return': (Vec[n],)*6}, {}),
    ('scipy.optimize._lsq.least_squares', 'cauchy', {'z': Vec[n], 'rho': Mat[3, n]}, {'known': {'cost_only': False}}),
    ('scipy.optimize._qap', '_calc_score', {'A': Mat[n, n], 'B': Mat[n, n], 'perm': Int[Vec[n]], 'return': S}, {'where': 'perm < n'}),
    ('scipy.optimize._qap', '_doubly_stochastic', {'P': Mat[n, n], 'return': Mat[n, n]}, {}),
    ('scipy.optimize._remove_redundancy', '_get_densest', {'A': Mat[n, m], 'eligibleRows': Vec[n], 'return': S}, {}),
    ('scipy.optimize._remove_redundancy', '_remove_zero_rows', {'A': Mat[n, m], 'b': Vec[n]}, {}),
    ('scipy.optimize._trustregion_constr.qp_subproblem', 'reinforce_box_boundaries', {'x': Vec[n], 'lb': Vec[n], 'ub': Vec[n], 'return': Vec[n]}, {}),
    ('scipy.optimize._trustregion_exact', 'singular_leading_submatrix', {'A': Mat[n, n], 'U': Mat[n, n], 'k': SizeSpec(Dim('j')), 'return': (S, Vec[n])}, {'where': 'j <= n'}),
    ('scipy.signal._peak_finding', '_boolrelextrema', {'data': Mat[n, m], 'return': Bool[Mat[n, m]]}, {'known': {'comparator': np.greater}}),
    ('scipy.signal._upfirdn', '_pad_h', {'h': Vec[n], 'up': SizeSpec(k)}, {}),
    ('scipy.sparse.linalg._eigen.lobpcg.lobpcg', '_get_indx', {'_lambda': Vec[n], 'num': SizeSpec(k), 'return': Vec[k]}, {'known': {'largest': True}, 'where': 'k <= n'}),
    ('scipy.sparse.linalg._onenormest', '_sum_abs_axis0', {'X': Mat[n, m], 'return': Vec[m]}, {}),
    ('scipy.sparse.linalg._onenormest', 'vectors_are_parallel', {'v': Vec[n], 'w': Vec[n], 'return': S}, {}),
    ('scipy.spatial._geometric_slerp', '_geometric_slerp', {'start': Vec['d+1'], 'end': Vec['d+1'], 't': Vec[n], 'return': Mat[n, 'd+1']}, {}),
    ('scipy.spatial._kdtree', 'distance_matrix', {'x': Mat[m, k], 'y': Mat[n, k], 'return': Mat[m, n]}, {}),
    ('scipy.spatial._kdtree', 'minkowski_distance_p', {'x': Mat[n, d], 'y': Mat[n, d], 'return': Vec[n]}, {}),
    ('scipy.spatial.transform._rotation_spline', '_matrix_vector_product_of_stacks', {'A': Arr[n, 3, 3], 'b': Mat[n, 3], 'return': Mat[n, 3]}, {}),
    ('scipy.spatial.transform._rotation_spline', '_rotvec_dot_to_angular_rate_matrix', {'rotvecs': Mat[n, 3], 'return': Arr[n, 3, 3]}, {}),
]
GPT = [
    ('gelu', {'x': Mat[T, C], 'return': Mat[T, C]}, {}),
    ('softmax', {'x': Arr[T, N, C], 'return': Arr[T, N, C]}, {}),
    ('layer_norm', {'x': Mat[T, C], 'g': Vec[C], 'b': Vec[C], 'return': Mat[T, C]}, {}),
    ('linear', {'x': Mat[T, C], 'w': Mat[C, k], 'b': Vec[k], 'return': Mat[T, k]}, {}),
    ('ffn', {'x': Mat[T, C], **mlp, 'return': Mat[T, C]}, {}),
    ('attention', {'q': Mat[n, k], 'k': Mat[m, k], 'v': Mat[m, d], 'mask': Mat[n, m], 'return': Mat[n, d]}, {}),
    ('mha', {'x': Mat[T, 24], **attn, 'return': Mat[T, 24]}, {'known': {'n_head': 12}}),
    ('transformer_block', {'x': Mat[T, 24], **block, 'return': Mat[T, 24]}, {'known': {'n_head': 12}}),
    ('gpt2', {'inputs': Int[Vec[T]], 'wte': Mat[V, 24], 'wpe': Mat[N, 24], 'blocks': [block, block], 'ln_f': norm24, 'return': Mat[T, V]}, {'known': {'n_head': 12}, 'where': ['T <= N', 'inputs < V']}),
]
SETTINGS = [dict(n=4, m=6, d=3, k=5, p=2, q=7, T=3, C=8, V=11, N=9, j=2), dict(n=7, m=3, d=5, k=6, p=4, q=2, T=5, C=4, V=6, N=8, j=1)]


def functions(gpt=None):
    "(name, the function, annotations, options)."
    for module, name, shapes, options in LIBRARY:
        f = getattr(importlib.import_module(module), name)
        yield name, getattr(f, '__wrapped__', f), shapes, options
    spec = importlib.util.spec_from_file_location('numpy_gpt', gpt or Path(__file__).parent/'numpy_gpt.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, shapes, options in GPT: yield name, getattr(module, name), shapes, options


def real(spec, sizes, rng):
    "A real value for an annotation."
    spec = read_annotation(spec, {})
    match spec:
        case ArraySpec(s):
            shape = tuple(evaluate(x, sizes) for x in s)
            return rng.integers(0, 2, shape) if spec.dtype == 'int' else rng.random(shape) > .5 if spec.dtype == 'bool' else rng.random(shape) - rng.choice([0, .5])
        case SizeSpec(size): return evaluate(size, sizes)
        case DictSpec(items): return {a: real(b, sizes, rng) for a, b in items}
        case list(): return [real(b, sizes, rng) for b in spec]
        case TupleSpec(items): return tuple(real(b, sizes, rng) for b in items)
    return 0.5 if spec is float else spec


def outcome(f, shapes, options, sizes, seed=0):
    "What NumPy says: the shapes of the result, or None."
    rng = np.random.default_rng(seed)
    arguments = {a: 0.5 if s is float else real(s, sizes, rng) for a, s in shapes.items() if a != 'return'} | options.get('known', {})
    try:
        with warnings.catch_warnings(), np.errstate(all='ignore'):
            warnings.simplefilter('ignore')
            result = f(**arguments)
    except Exception: return None
    flat = lambda r: [x for v in r for x in flat(v)] if isinstance(r, tuple | list) else [np.shape(r)]
    return flat(result)


def wanted(shapes, sizes):
    if 'return' not in shapes: return None
    spec = read_annotation(shapes['return'], {})
    return [tuple(evaluate(x, sizes) for x in s.sizes) for _, s in arrays_of(spec, 'r')]


def changes(shapes):
    "Each array argument transposed, with an axis more, less, renamed, or longer by one."
    Z = Dim('zz')
    def put(spec, change):
        "The annotation with its arrays changed one at a time."
        spec = read_annotation(spec, {})
        if isinstance(spec, ArraySpec):
            for s in change(spec): yield s
        elif isinstance(spec, DictSpec):
            for i, (key, inner) in enumerate(spec.items):
                for s in put(inner, change): yield DictSpec((*spec.items[:i], (key, s), *spec.items[i + 1:]))
        elif isinstance(spec, list):
            for i, inner in enumerate(spec):
                for s in put(inner, change): yield [*spec[:i], s, *spec[i + 1:]]
    def change(spec):
        s = spec.sizes
        new = [s[::-1]] if len(s) > 1 and s != s[::-1] else []
        new += [s[:i] + (Z,) + s[i + 1:] for i in range(len(s))] + [s[:i] + (s[i] + 1,) + s[i + 1:] for i in range(len(s))]
        new += [(Z, *s), (*s, Z)] + [s[:i] + s[i + 1:] for i in range(len(s))]
        for x in new: yield ArraySpec(x, (), spec.dtype)
    for name, spec in shapes.items():
        if name == 'return' or spec is float: continue
        for new in put(spec, change): yield f'{name}: {new}', shapes | {name: new}


def as_declared(f, shapes, options, sizes, seed=0):
    "Does NumPy run at these sizes, with a result of the shape that is declared?"
    run = outcome(f, shapes, options, sizes, seed)
    return run is not None and (wanted(shapes, sizes) is None or run == wanted(shapes, sizes))


def everywhere(f, shapes, options):
    "Does it, at each of many sizes that its conditions allow?"
    rng = random.Random(0)
    for seed in range(80):
        sizes = {name: rng.randint(1, 5) for name in SETTINGS[0] | {'zz': 1}}
        where = options.get('where', ())
        known = [c for text in ([where] if isinstance(where, str) else where) if names_of(parse_claim(text)[0].dim) <= sizes.keys() for c in parse_claim(text)]
        if all(_holds(c, sizes) for c in known) and not as_declared(f, shapes, options, sizes, seed): return False
    return True


def verdict_on(f, shapes, options, sizes):
    "What the check says: accepted, refused, or accepted where a condition holds that the function tests itself, and not here."
    try: report = typed(f, shapes=shapes, **options).__shapes__.report()
    except ShapeError as e: return 'refused', e.reason
    failing = [c for c in report.requires if not all(_holds(c, s) for s in sizes)]
    return ('tested by the function' if failing else 'accepted'), ''


def trial(gpt=None, thorough=False):
    "(accepted, refused) functions; a Counter of (what NumPy does, what the check says) over the changes; those missed; if thorough, those refused though NumPy runs them at every size."
    accepted, refused, table, missed, strict = [], [], Counter(), [], []
    for name, f, shapes, options in functions(gpt):
        verdict, reason = verdict_on(f, shapes, options, [])
        if verdict == 'refused': refused.append((name, reason)); continue
        accepted.append(name)
        for what, new in changes(shapes):
            sizes = [s | {'zz': 13 - i} for i, s in enumerate(SETTINGS)]
            verdict, reason = verdict_on(f, new, options, sizes)
            good = all(as_declared(f, new, options, s) for s in sizes)
            table['as declared' if good else 'fails or another shape', verdict] += 1
            if not good and verdict == 'accepted': missed.append(f'{name}({what})')
            if thorough and good and verdict == 'refused' and everywhere(f, new, options): strict.append((f'{name}({what})', reason))
    return accepted, refused, table, missed, strict


if __name__ == '__main__':
    accepted, refused, table, missed, strict = trial(*sys.argv[1:2], thorough=True)
    for name, reason in refused: print('refused', name, ':', reason)
    print(f'{len(accepted)} of {len(accepted) + len(refused)} accepted')
    for (does, verdict), count in sorted(table.items()): print(f'{count:5}  {does:24}{verdict}')
    print(len(missed), 'missed:', *(f'\n  {x}' for x in missed))
    print(len(strict), 'refused though NumPy runs them at every size:', *(f'\n  {x}: {reason}' for x, reason in strict))
