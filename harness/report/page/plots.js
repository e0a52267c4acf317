'use strict';

// The series of a case: those that share a name share axes. The plotting library draws them, and again in other colors.
const STROKES = ['before', 'after', 'beside', 'good', 'doubt', 'bad'];

// A series that is named "x: clients" is not drawn: its values are where the others stand, and its name is that of the axis.
const AXIS = 'x: ';

function plotOptions(box, title, lines, across) {
	const thin = {stroke: colorOf(box, 'line'), width: 1 / devicePixelRatio};
	const axis = label => ({stroke: colorOf(box, 'dim'), grid: thin, ticks: thin, label});
	return {
		title, width: Math.max(320, box.clientWidth), height: 240,
		scales: {x: {time: false}},
		axes: [axis(across), axis()],
		series: [{label: across}, ...lines.map((line, i) => ({
			label: line.name, stroke: colorOf(box, STROKES[i % STROKES.length]), width: 1.5, dash: i % 2 ? [6, 3] : [], points: {show: false},
		}))],
	};
}

function plot(title, all) {
	const x = all.find(line => line.name.startsWith(AXIS));
	const lines = all.filter(line => line !== x);
	const box = el('div.plot', {role: 'img', 'aria-label': `${title}: ` + lines.map(line => line.name).join(', ')});
	const length = Math.max(...lines.map(line => line.values.length));
	const data = [Array.from({length}, (_, i) => x ? x.values[i] : i + 1), ...lines.map(line => Array.from({length}, (_, i) => line.values[i] ?? null))];
	let drawn = null;
	const draw = () => {
		if (!box.isConnected || box.clientWidth === 0) return;
		if (drawn) drawn.destroy();
		drawn = new uPlot(plotOptions(box, title, lines, x ? x.name.slice(AXIS.length) : 'sample'), data, box);
	};
	dark.addEventListener('change', draw);
	onResize(box, draw);
	return box;
}

function plots(entry) {
	const titles = new Map();
	for (const line of entry.series || []) {
		if (line.values.length === 0) continue;
		if (!titles.has(line.plot)) titles.set(line.plot, []);
		titles.get(line.plot).push(line);
	}
	return titles.size === 0 ? null : [el('h3', 'Plots'), ...[...titles].map(([title, lines]) => plot(title, lines))];
}
