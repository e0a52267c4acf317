'use strict';

// el('td.number', 12) or el('a', {href: '#x'}, 'text', child): what comes from a run is only ever set as text.
function el(kind, ...rest) {
	const [name, ...classes] = kind.split('.');
	const element = document.createElement(name);
	if (classes.length) element.className = classes.join(' ');
	for (const part of rest.flat(3)) {
		if (part === null || part === undefined) continue;
		if (part instanceof Node || typeof part !== 'object') element.append(part);
		else for (const [key, value] of Object.entries(part)) element.setAttribute(key, value);
	}
	return element;
}

function table(kind, headings, rows) {
	const head = headings.map(heading => el(heading.startsWith('#') ? 'th.number' : 'th', {scope: 'col'}, heading.replace('#', '')));
	return el('div.wide', el('table' + kind, el('thead', el('tr', head)), el('tbody', rows)));
}

function pairs(entries) {
	return el('dl', entries.filter(([, value]) => value !== undefined && value !== '' && value !== null)
		.flatMap(([name, value]) => [el('dt', name), el('dd', value)]));
}

function result(word) {
	return el('span.result.' + word.split(' ')[0], word);
}

const seconds = ms => (ms / 1000).toFixed(2) + ' s';
const sum = (list, value) => list.reduce((total, item) => total + value(item), 0);
const caseName = entry => entry.repetition > 1 ? `${entry.id} #${entry.repetition}` : entry.id;
const firings = entry => sum(entry.faults, fault => fault.fired);
const retries = entry => (entry.retries_40001 || 0) + (entry.retries_40P01 || 0);

// The first word of a line of output.txt, and what it says.
const lineParts = line => line.startsWith('== ') ? ['==', line.slice(3)] : [line.slice(0, 8).trim(), line.slice(9)];

// Of a run that was cut short the sums are those of what had ended.
function totalsOf(run) {
	const count = word => run.cases.filter(entry => entry.result === word).length;
	return run.head.totals || {
		passed: sum(run.cases, entry => entry.passed), failed: sum(run.cases, entry => entry.failed),
		scenarios: run.cases.length, scenarios_failed: count('FAIL'), unknown: count('UNKNOWN'), broken: count('BROKEN'),
		skipped: count('SKIP'), retries_40001: sum(run.cases, entry => entry.retries_40001),
		retries_40P01: sum(run.cases, entry => entry.retries_40P01), duration_ms: sum(run.cases, entry => entry.duration_ms),
	};
}

// In the order in which the exit code judges.
function verdictOf(run) {
	const totals = totalsOf(run);
	if (run.head.cut_short) return 'CUT SHORT';
	if (totals.failed > 0 || totals.scenarios_failed > 0) return 'FAIL';
	if (totals.broken > 0) return 'BROKEN';
	return totals.unknown > 0 || totals.passed === 0 ? 'UNKNOWN' : 'PASS';
}

// When a part of the page gets its width, and whenever that changes; outside the observer's own round, which must not resize.
function onResize(box, act) {
	let width = 0;
	new ResizeObserver(() => requestAnimationFrame(() => {
		if (box.clientWidth === width) return;
		width = box.clientWidth;
		if (width) act();
	})).observe(box);
}

const colorOf = (element, name) => getComputedStyle(element).getPropertyValue('--' + name).trim();
const dark = matchMedia('(prefers-color-scheme: dark)');
