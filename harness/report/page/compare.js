'use strict';

// Two runs side by side: only what differs. Checks are the same ones when they have the same text, counted from the first.
function numbered(list, name) {
	const seen = new Map();
	return new Map(list.map(item => {
		const n = (seen.get(name(item)) || 0) + 1;
		seen.set(name(item), n);
		return [n > 1 ? `${name(item)} (${n})` : name(item), item];
	}));
}

// [name, before, after] of what is not the same; one side is undefined where it is not there.
function differences(before, after, same) {
	return [...new Set([...before.keys(), ...after.keys()])].map(name => [name, before.get(name), after.get(name)])
		.filter(([, one, other]) => !one || !other || !same(one, other));
}

const sameCheck = (one, other) => one.ok === other.ok && one.expected === other.expected && one.actual === other.actual;
const checkText = check => !check ? el('td.dim', 'not there')
	: el('td' + (check.ok ? '' : '.FAIL'), `${check.ok ? '' : 'FAIL: '}${check.actual}`, check.ok && check.expected === check.actual ? '' : ` (expected ${check.expected})`);

const CASE_VALUES = [
	['result', entry => entry.result], ['reason', entry => entry.reason], ['checks held', entry => entry.passed],
	['checks failed', entry => entry.failed], ['faults fired', firings], ['retries after 40001', entry => entry.retries_40001],
	['retries after 40P01', entry => entry.retries_40P01],
];

function valueRows(before, after) {
	return CASE_VALUES.filter(([, value]) => !before || !after || value(before) !== value(after)).map(([name, value]) =>
		el('tr', el('th', {scope: 'row'}, name), el('td', before ? String(value(before) ?? '') : '-'), el('td', after ? String(value(after) ?? '') : '-')));
}

function compareCase([name, before, after]) {
	const checks = differences(numbered(before?.checks || [], check => check.text), numbered(after?.checks || [], check => check.text), sameCheck);
	const only = !before ? ', only in the second' : !after ? ', only in the first' : '';
	return el('section', {id: name}, el('h2', name, el('span.dim', only)),
		el('p', (after || before).title),
		table('', ['', 'first', 'second'], [...valueRows(before, after),
			...before && after ? checks.map(([text, one, other]) => el('tr', el('td', text), checkText(one), checkText(other))) : []]));
}

function sameCase(one, other) {
	return valueRows(one, other).length === 0 &&
		differences(numbered(one.checks || [], check => check.text), numbered(other.checks || [], check => check.text), sameCheck).length === 0;
}

function showComparison(page, first, second) {
	const [before, after] = [first, second].map(run => new Map(run.cases.map(entry => [caseName(entry), entry])));
	const changed = differences(before, after, sameCase);
	const environment = differences(...[first, second].map(run => new Map(Object.entries(run.head.environment))), (one, other) => one === other);
	const shared = [...before.keys()].filter(name => after.has(name));
	document.title = 'Counterproof: two runs';
	page.append(el('h1', 'Two runs of suite ', first.head.suite, first.head.suite === second.head.suite ? '' : ` and suite ${second.head.suite}`),
		table('', ['', 'folder', 'result', 'seed', '#cases', '#held', '#failed', '#time'], [['first', first], ['second', second]].map(([name, run]) => {
			const totals = totalsOf(run);
			return el('tr', el('th', {scope: 'row'}, name), el('td', run.folder), el('td', result(verdictOf(run))), el('td', run.head.seed),
				el('td.number', totals.scenarios), el('td.number', totals.passed), el('td.number', totals.failed), el('td.number', seconds(totals.duration_ms)));
		})),
		el('p', {id: 'changed'}, `${changed.length} ${changed.length === 1 ? 'case differs' : 'cases differ'}, ${shared.length - changed.filter(([, one, other]) => one && other).length} the same. Durations differ always and are not compared.`),
		environment.length === 0 ? '' : el('section', el('h2', 'Environment'), table('', ['', 'first', 'second'], environment.map(([name, one, other]) =>
			el('tr', el('th', {scope: 'row'}, name), el('td', one ?? '-'), el('td', other ?? '-'))))),
		...changed.map(compareCase));
}
