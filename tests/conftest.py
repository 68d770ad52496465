"One line at the end, `N passed, N failed`; a skipped test counts as failed where CI is set."
import os, signal, pytest
from bendml.data import data_dir

collect_ignore = [] if (data_dir()/'gpt2/model.safetensors').is_file() else ['test_gpt2_published.py']   # half a gigabyte, which not everyone has

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN: signal.signal(signal.SIGINT, signal.default_int_handler)   # a shell's & sets it, and tests interrupt

TOGETHER = ('tests/test_site.py', 'tests/test_serve.py')   # what the first test of such a file sets up, minutes of work or a port, serves the others


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    "Each test goes to a worker that is free, but a file of these to one. (pytest-xdist 3.8 loses its own marks under pytest 9.2.)"
    from xdist.scheduler import LoadScopeScheduling

    class Files(LoadScopeScheduling):
        def _split_scope(self, nodeid): return file if (file := nodeid.split('::')[0]) in TOGETHER else nodeid
    return Files(config, log)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    reporter = config.pluginmanager.get_plugin('terminalreporter')
    if reporter is None or hasattr(config, 'workerinput'): return
    count = lambda *kinds: sum(len(reporter.stats.get(k, [])) for k in kinds)
    skipped = count('skipped')
    line = f"{count('passed')} passed, {count('failed', 'error')} failed"
    if skipped: print(f'{skipped} skipped: see `pytest -rs`')
    print(line + (f', {skipped} skipped' if skipped else ''))


def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin('terminalreporter')
    if os.environ.get('CI') and reporter and reporter.stats.get('skipped') and exitstatus == 0: session.exitstatus = 1


@pytest.fixture(scope='session')
def mnist_dir():
    "The real MNIST files, fetched if they are not there yet."
    from bendml.data import fetch
    return fetch('mnist')
