'use strict';

// From the embedded evidence to the page. Long stories are made when they are opened.
const EAGER_LINES = 4000;

function storyRows(entry) {
	let next = 0;
	return entry.lines.map(lineParts).filter(([word]) => word !== 'claim' && word !== 'result').map(([word, text]) => {
		if (word === 'step') return el('tr.step', el('th', {colspan: 4, scope: 'rowgroup'}, text));
		if (word !== 'PASS' && word !== 'FAIL') return el('tr.said', el('td', word), el('td', {colspan: 3}, text));
		return checkRow(entry.checks[next++]);
	});
}

function checkRow(check) {
	const word = check.ok ? 'PASS' : 'FAIL';
	return el('tr', el('td', result(word)), el('td', check.text), el('td', check.expected), el('td' + (check.ok ? '' : '.FAIL'), check.actual));
}

const CHECK_HEADINGS = ['', 'check', 'expected', 'actual'];

function caseBody(run, entry) {
	const failed = (entry.checks || []).filter(check => !check.ok);
	const traces = run.traces.filter(trace => [caseName(entry), `${entry.id}#${entry.repetition}`].includes(trace.label) ||
		(trace.label === '' && run.cases.length === 1));
	const parts = [
		pairs([['claim', entry.claim], ['kind', entry.kind], ['method', entry.method], ['expected', entry.expect],
			['guarantee', entry.guarantee], ['observed in', entry.observed], ['not shown', entry.not_shown],
			['reason', entry.reason], ...entry.faults.map(fault => ['fault', fault.text])]),
		failed.length ? [el('h3', 'What failed'), table('.story', CHECK_HEADINGS, failed.map(checkRow))] : null,
		traces.map(trace => diagram(trace)),
		plots(entry),
		run.head.suite === 'crashpoints' && entry.lines ? crashPointTable(entry) : null,
		entry.id === 'isolation/hermitage' && entry.checks ? isolationMatrix(entry) : null,
		entry.lines ? [el('h3', 'All it said'), table('.story', CHECK_HEADINGS, storyRows(entry))]
			: el('p.warning', 'Left out of a page as long as this one: results.json has it.'),
	];
	return parts.flat(3).filter(part => part);
}

function caseSection(run, entry, eager) {
	const body = el('div');
	const section = el('details.case', {id: caseName(entry)},
		el('summary', result(entry.result), ' ', el('strong', caseName(entry)), '  ', entry.title), body);
	const fill = () => { if (!body.hasChildNodes()) body.append(...caseBody(run, entry)); };
	section.fill = fill;
	section.addEventListener('toggle', () => section.open && fill());
	section.open = entry.result === 'FAIL' || entry.result === 'BROKEN' || run.cases.length === 1;
	if (eager || section.open) fill();
	return section;
}

function caseRow(entry) {
	return el('tr', el('td.nowrap', el('a', {href: '#' + encodeURIComponent(caseName(entry))}, caseName(entry))), el('td', result(entry.result)),
		el('td', entry.claim), el('td.number', `${entry.passed} held` + (entry.failed ? `, ${entry.failed} failed` : '')),
		el('td.number', seconds(entry.duration_ms)), el('td.number', firings(entry)), el('td.number', retries(entry)));
}

function summary(run) {
	const totals = totalsOf(run);
	const environment = run.head.environment;
	const count = (name, what) => totals[name] || what === 'held' || what === 'in all' ? [', ', el('span', {'data-count': name}, totals[name]), ' ' + what] : [];
	const counts = (...parts) => el('span', parts.flat().slice(1));
	return [el('h1', `Suite ${run.head.suite} `, result(verdictOf(run))),
		pairs([['cases', counts(count('scenarios', 'in all'), count('scenarios_failed', 'failed'), count('broken', 'broken'), count('unknown', 'unknown'), count('skipped', 'skipped'))],
			['checks', counts(count('passed', 'held'), count('failed', 'failed'))],
			['retries', totals.retries_40001 || totals.retries_40P01 ? counts(count('retries_40001', 'after 40001'), count('retries_40P01', 'after 40P01')) : ''],
			['time', seconds(totals.duration_ms)],
			['seed', run.head.seed],
			['version', `Counterproof ${environment.counterproof || '?'} (${environment.commit || '?'})` + (environment.server_version ? `, PostgreSQL ${environment.server_version}` : '')],
			['replay', environment.replay ? el('code', environment.replay) : '']]),
		el('details', el('summary', 'Environment'), pairs(Object.entries(environment)))];
}

function cutShort(lines) {
	return [el('p.warning', 'The run was cut short: this is what had ended by then.'),
		lines.length ? [el('h2', 'What was running'), table('.story', ['', ''], lines.map(lineParts).map(([word, text]) => el('tr.said', el('td', word), el('td', text))))] : []].flat();
}

function openTarget() {
	const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
	if (target && target.matches('details.case')) {
		target.open = true;
		target.fill();
		target.scrollIntoView();
		target.querySelector('summary').focus({preventScroll: true});
	}
}

function showRun(page, run) {
	const lines = sum(run.cases, entry => (entry.lines || []).length);
	const known = new Set(run.cases.flatMap(entry => [caseName(entry), `${entry.id}#${entry.repetition}`, run.cases.length === 1 ? '' : caseName(entry)]));
	document.title = `${verdictOf(run)} suite ${run.head.suite} - Counterproof`;
	page.append(...summary(run), ...run.head.cut_short ? cutShort(run.head.cut_short) : []);
	if (run.head.suite === 'mutants' && !run.shortened) page.append(...mutantMatrix(run.cases));
	page.append(el('h2', 'Cases'), table('.cases', ['case', 'result', 'claim', '#checks', '#time', '#faults fired', '#retries'], run.cases.map(caseRow)),
		el('h2', 'Each case'));
	page.append(...run.cases.map(entry => caseSection(run, entry, lines < EAGER_LINES)));
	for (const trace of run.traces.filter(trace => !known.has(trace.label)))
		page.append(el('h2', `Trace ${trace.label}`), ...diagram(trace));
	addEventListener('hashchange', openTarget);
	addEventListener('beforeprint', () => document.querySelectorAll('details.case').forEach(section => { section.fill(); section.open = true; }));
	openTarget();
}

addEventListener('error', event => document.getElementById('page').prepend(
	el('p.warning', {role: 'alert'}, `This page could not draw itself (${event.message}). output.txt beside it says the same in plain text.`)));

{
	const runs = [...document.querySelectorAll('script.run')].map(script => JSON.parse(script.textContent));
	const page = document.getElementById('page');
	if (runs.length === 2) showComparison(page, ...runs);
	else showRun(page, runs[0]);
}
