'use strict';

// What some suites have found as a table, read from what their cases say.
const FAULTS = ['kill-client', 'cut', 'stop-server', 'pause'];
const LEVELS = ['read committed', 'repeatable read', 'serializable'];

function cell(word, sign, said) {
	return el(`td.cell${word ? '.' + word : ''}`, {title: said || ''}, sign);
}

// Suite mutants: a twin on a row, a case in a column. X: the check that the twin names failed; x: others did.
function mutantMatrix(cases) {
	const columns = new Map();
	const found = cases.filter(entry => entry.id !== 'matrix').map(entry => {
		const cells = new Map();
		for (const [word, text] of entry.lines.map(lineParts)) {
			const all = word === 'note' && /^all checks held in:(.*)$/.exec(text);
			const one = word === 'note' && /^(\S+-\S+): (.*)$/.exec(text);
			if (all) all[1].trim().split(' ').forEach(id => cells.set(id, ['PASS', '.', 'all checks held']));
			else if (one) cells.set(one[1], /^\d+ checks failed/.test(one[2]) ? ['FAIL', 'x', one[2]] : ['UNKNOWN', '!', one[2]]);
		}
		for (const check of entry.checks) {
			const named = /^(\S+) by: /.exec(check.text);
			if (named && check.actual === 'caught' && cells.has(named[1])) cells.get(named[1])[1] = 'X';
		}
		cells.forEach((_, id) => columns.set(id, true));
		return [entry, cells];
	});
	const ids = [...columns.keys()].sort();
	return [el('h2', 'Every twin and every case'),
		el('p', 'X: the check that the twin names failed. x: others did. A dot: all held. !: no verdict. Blank: not run.'),
		table('.matrix', ['', ...ids, 'what is wrong'], found.map(([entry, cells]) => el('tr',
			el('th', {scope: 'row'}, el('a', {href: '#' + entry.id}, entry.id), ' ', result(entry.result)),
			ids.map(id => {
				const [, sign, said] = cells.get(id) || ['', '', ''];
				return cell(sign === 'X' || sign === 'x' ? 'after' : sign === '!' ? 'UNKNOWN' : 'dim', sign, said);
			}),
			el('td', entry.title))))];
}

// Suite crashpoints: a message on a row, a fault in a column.
function crashPointTable(entry) {
	const points = new Map();
	const cells = new Map();
	const put = (text, word) => {
		const parts = /^#(\d+) .*, (kill-client|cut|stop-server|pause)(?:: (.*))?$/.exec(text);
		if (parts) cells.set(parts[1] + parts[2], [word, parts[3] || '']);
	};
	for (const [word, text] of entry.lines.map(lineParts)) {
		const point = /^#(\d+) (.*)$/.exec(text);
		if (word === 'note' && /: unknown: /.test(text)) put(text.replace(': unknown: ', ': '), 'unknown');
		else if (word === 'note' && /^violated: #/.test(text)) put(text.slice(10), 'VIOLATED');
		else if (word === 'note' && point && !points.has(point[1])) points.set(point[1], point[2]);
	}
	for (const check of entry.checks) put(check.text, check.ok ? 'held' : 'VIOLATED');
	if (points.size === 0) return null;
	const classes = {held: 'PASS', VIOLATED: 'FAIL', unknown: 'UNKNOWN'};
	return [el('h3', 'Every point and every fault'),
		table('.matrix', ['#point', 'message', ...FAULTS], [...points].map(([number, message]) => el('tr',
			el('td.number', number), el('td.mono', message),
			FAULTS.map(fault => {
				const [word, said] = cells.get(number + fault) || ['', ''];
				return cell(classes[word], word, said);
			}))))];
}

// isolation/hermitage: an anomaly on a row, a level in a column.
function isolationMatrix(entry) {
	const rows = new Map();
	for (const check of entry.checks) {
		const level = LEVELS.find(name => check.text.endsWith(' at ' + name));
		if (!level) continue;
		const anomaly = check.text.slice(0, -level.length - 4);
		if (!rows.has(anomaly)) rows.set(anomaly, {});
		rows.get(anomaly)[level] = check;
	}
	if (rows.size === 0) return null;
	return [el('h3', 'Fourteen anomalies at three levels'),
		table('', ['anomaly', ...LEVELS], [...rows].map(([anomaly, checks]) => el('tr', el('th', {scope: 'row'}, anomaly),
			LEVELS.map(level => {
				const check = checks[level];
				return !check ? el('td') : check.ok ? el('td', check.actual)
					: el('td.FAIL', `${check.actual} (expected ${check.expected})`);
			}))))];
}
