'use strict';

// A trace as a space-time diagram: time runs down, a line for each actor, an event on each row, an arrow for each flow.
// Only what is in view is drawn, on one canvas, so that the length of a trace does not matter.

// What an event is, by its first word, which is its kind.
const MARKS = [
	['kill', '✕', /^(kill|stop|lost)/], ['restart', '↻', /^(re)?start/], ['wait', '◔', /^wait/], ['install', '■', /^install/],
	['again', '⇉', /^(batch|point \S+\.delivered) .*\bdup=[1-9]/], ['commit', '◆', /^(commit|batch |point \S+\.after_commit)/],
];
const ROW_LEAST = 3, ROW_MOST = 44, ROW_FIRST = 22, TEXT_LEAST = 11;
const LEVEL = 15, LEVELS_MOST = 4, LETTER = 7;
const PAPER_ROWS = 40, PAPER_MOST = 1200;

const markOf = event => event.mark ??= MARKS.find(([, , fits]) => fits.test(event.text)) || null;


// --- the model: who is before whom ---

// Rows are in an order that respects the clocks, which are dense: entry `host` of row i stands at i * width + host.
function readTrace(trace) {
	const width = trace.hosts.length;
	const listed = inOrder(trace.events, width) ? trace.events
		: trace.events.map(event => [clockSum(event), event]).sort((one, other) => one[0] - other[0]).map(([, event]) => event);
	const clocks = new Int32Array(listed.length * width);
	const rows = trace.hosts.map(() => []); // of an actor's events, in its order
	const events = listed.map((list, row) => {
		for (let i = 1; i < list.length; i += 2) clocks[row * width + list[i]] = list[i + 1];
		rows[list[1]][list[2] - 1] = row;
		return {text: list[0], host: list[1], own: list[2]};
	});
	const model = {label: trace.label, hosts: trace.hosts, width, events, clocks, rows, flows: []};
	events.forEach((event, row) => addFlows(model, event, row));
	return model;
}

function inOrder(lists, width) {
	const placed = new Int32Array(width);
	for (const list of lists) {
		if (placed[list[1]]++ !== list[2] - 1) return false;
		for (let i = 3; i < list.length; i += 2) if (placed[list[i]] < list[i + 1]) return false;
	}
	return true;
}

function clockSum(list) {
	let total = 0;
	for (let i = 2; i < list.length; i += 2) total += list[i];
	return total;
}

// A flow for each entry that rose since the actor's last event, less those that another one of them brings along.
function addFlows({width, clocks, rows, flows}, event, row) {
	const last = event.own > 1 ? rows[event.host][event.own - 2] * width : -1;
	const risen = [];
	for (let host = 0; host < width; host++) {
		const n = clocks[row * width + host];
		if (host !== event.host && n > (last < 0 ? 0 : clocks[last + host])) risen.push(host);
	}
	for (const host of risen) {
		const n = clocks[row * width + host];
		if (!risen.some(other => other !== host && clocks[rows[other][clocks[row * width + other] - 1] * width + host] >= n))
			flows.push({from: rows[host][n - 1], to: row});
	}
}

// 'before', 'after' or 'beside' (concurrent) of the chosen row, 'chosen' itself.
function relation({events, clocks, width}, chosen, row) {
	if (row === chosen) return 'chosen';
	const one = events[chosen], other = events[row];
	if (clocks[chosen * width + other.host] >= other.own) return 'before';
	return clocks[row * width + one.host] >= one.own ? 'after' : 'beside';
}


// --- drawing ---

// Where things stand for a canvas of this width. Names that are wider than a lane take turns on several levels.
function layout(model, width) {
	const lane = Math.max(14, Math.min(90, (width * 0.5) / model.width));
	const longest = Math.max(...model.hosts.map(name => name.length)) * LETTER;
	const levels = Math.min(LEVELS_MOST, Math.ceil(longest / lane), model.width);
	return {lane, levels, head: levels * LEVEL + 11, text: lane * model.width + 12, x: host => lane * (host + 0.5)};
}

function palette(box) {
	return Object.fromEntries(['back', 'front', 'dim', 'line', 'before', 'after', 'beside', 'chosen', 'found', 'kill', 'restart', 'wait', 'install', 'again', 'commit']
		.map(name => [name, colorOf(box, name)]));
}

function arrow(pen, x0, y0, x1, y1) {
	const angle = Math.atan2(y1 - y0, x1 - x0);
	const tip = [x1 - 5 * Math.cos(angle), y1 - 5 * Math.sin(angle)];
	pen.beginPath();
	pen.moveTo(x0, y0);
	pen.lineTo(...tip);
	for (const turn of [-0.45, 0.45]) {
		pen.moveTo(...tip);
		pen.lineTo(tip[0] - 7 * Math.cos(angle + turn), tip[1] - 7 * Math.sin(angle + turn));
	}
	pen.stroke();
}

// Rows first.. of a view: {width, height, top (pixels scrolled), row (pixels a row), chosen, found, colors}.
function draw(pen, model, view) {
	const {colors, row} = view;
	const {lane, levels, head, text, x} = layout(model, view.width);
	const y = i => head + i * row + row / 2 - view.top;
	const first = Math.max(0, Math.floor(view.top / row) - 1);
	const end = Math.min(model.events.length, Math.ceil((view.top + view.height) / row) + 1);
	const shade = i => view.chosen < 0 ? colors.front : colors[relation(model, view.chosen, i)];
	pen.clearRect(0, 0, view.width, view.height);
	pen.font = '12px system-ui, sans-serif';
	pen.textBaseline = 'middle';
	pen.strokeStyle = colors.line;
	pen.lineWidth = 1;
	model.rows.forEach((rows, host) => { // an actor's line ends with it
		pen.beginPath();
		pen.moveTo(x(host), Math.max(head, y(rows[0])));
		pen.lineTo(x(host), Math.min(view.height, y(rows.at(-1))));
		if (y(rows.at(-1)) > head && y(rows[0]) < view.height) pen.stroke();
	});
	for (const flow of model.flows) {
		if (flow.to < first || flow.from >= end) continue;
		pen.strokeStyle = view.chosen < 0 ? colors.dim : relation(model, view.chosen, flow.to) === relation(model, view.chosen, flow.from) ||
			flow.to === view.chosen || flow.from === view.chosen ? shade(flow.to === view.chosen ? flow.from : flow.to) : colors.line;
		arrow(pen, x(model.events[flow.from].host), y(flow.from), x(model.events[flow.to].host), y(flow.to));
	}
	for (let i = first; i < end; i++) drawEvent(pen, model, view, i, x, y(i), text, shade(i));
	drawHeads(pen, model, view, {lane, levels, head, x});
}

function drawEvent(pen, model, view, i, x, y, text, color) {
	const event = model.events[i];
	const mark = markOf(event);
	const relative = view.chosen < 0 ? '' : {before: '↑ ', after: '↓ ', beside: '∥ ', chosen: '● '}[relation(model, view.chosen, i)];
	const radius = Math.min(4, view.row / 3);
	if (view.found.has(i)) {
		pen.fillStyle = view.colors.found;
		pen.fillRect(0, y - view.row / 2, view.width, view.row);
	}
	pen.fillStyle = mark ? view.colors[mark[0]] : color;
	if (mark && view.row >= TEXT_LEAST) {
		pen.font = 'bold 15px system-ui, sans-serif';
		pen.textAlign = 'center';
		pen.strokeStyle = view.colors.back;
		pen.lineWidth = 4;
		pen.strokeText(mark[1], x(event.host), y);
		pen.fillText(mark[1], x(event.host), y);
		pen.font = '12px system-ui, sans-serif';
		pen.textAlign = 'left';
		pen.lineWidth = 1;
	} else {
		pen.beginPath();
		pen.arc(x(event.host), y, i === view.chosen ? radius + 2 : radius, 0, 2 * Math.PI);
		pen.fill();
	}
	if (view.row >= TEXT_LEAST) {
		pen.fillStyle = mark && view.chosen < 0 ? view.colors[mark[0]] : color;
		pen.fillText(`${relative}${model.hosts[event.host]}: ${event.text}`, text, y);
	}
}

// Names of actors stay in view. Where even levels do not make room they are cut; the chosen event is told in full below.
function drawHeads(pen, model, view, {lane, levels, head, x}) {
	const room = Math.max(3, Math.floor(lane * levels / LETTER));
	pen.fillStyle = view.colors.back;
	pen.fillRect(0, 0, view.width, head - 4);
	pen.fillStyle = view.colors.front;
	model.hosts.forEach((name, host) => {
		const shown = name.length > room ? name.slice(0, room - 2) + '…' : name;
		const half = pen.measureText(shown).width / 2;
		pen.fillText(shown, Math.max(2, x(host) - half), LEVEL * (host % levels) + LEVEL / 2 + 3);
	});
}

function canvasPen(canvas, width, height) {
	const scale = window.devicePixelRatio || 1;
	canvas.width = Math.round(width * scale);
	canvas.height = Math.round(height * scale);
	canvas.style.height = height + 'px';
	const pen = canvas.getContext('2d');
	pen.scale(scale, scale);
	return pen;
}


// --- the part of the page ---

class Diagram {
	constructor(trace) {
		this.model = readTrace(trace);
		this.view = {row: ROW_FIRST, chosen: -1, found: new Set(), top: 0, width: 0, height: 0};
		this.canvas = el('canvas');
		this.length = el('div', {style: 'position: absolute; top: 0; width: 1px'});
		this.box = el('div.diagram', {tabindex: 0, role: 'application', 'aria-label': 'Space-time diagram: arrows choose an event, Home and End the ends, plus and minus zoom, Escape lets go'},
			this.length, this.canvas);
		this.chosen = el('div.chosen', {'aria-live': 'polite'});
		this.search = el('input', {type: 'search', placeholder: 'search events', 'aria-label': 'search events'});
		this.foundNote = el('span.dim');
		this.paper = el('div.paper.printed');
		this.listen();
		this.tell();
	}

	parts() {
		const button = (name, title, act) => {
			const made = el('button', {type: 'button', title, 'aria-label': title}, name);
			made.addEventListener('click', act);
			return made;
		};
		return [el('h3', `What happened before what: ${this.model.events.length} events of ${this.model.width} actors`),
			el('div.tools', this.search, this.foundNote, button('+', 'zoom in', () => this.zoom(1.5)), button('−', 'zoom out', () => this.zoom(1 / 1.5)),
				el('span', MARKS.map(([name, sign]) => [el('span.' + name, `${sign} ${name === 'again' ? 'delivered again' : name}`), '  '])),
				el('span.dim', 'down is later only along lines and arrows; distance is not time')),
			this.box, this.chosen, this.paper];
	}

	listen() {
		this.box.addEventListener('scroll', () => this.later());
		this.box.addEventListener('click', event => this.choose(this.rowAt(event.clientY)));
		this.box.addEventListener('keydown', event => this.key(event));
		this.box.addEventListener('wheel', event => {
			if (event.ctrlKey) { event.preventDefault(); this.zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2); }
		}, {passive: false});
		this.search.addEventListener('input', () => this.find());
		this.search.addEventListener('keydown', event => { if (event.key === 'Enter') this.findNext(event.shiftKey ? -1 : 1); });
		onResize(this.box, () => this.size());
		dark.addEventListener('change', () => this.later());
		addEventListener('beforeprint', () => this.print());
	}

	size() {
		this.head = layout(this.model, this.box.clientWidth).head;
		const whole = this.head + this.model.events.length * this.view.row + 8;
		this.length.style.height = whole + 'px';
		this.box.style.height = Math.min(whole + 2, Math.max(320, innerHeight * 0.75)) + 'px';
		this.later();
	}

	later() {
		if (this.waiting) return;
		this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.paint(); });
	}

	paint() {
		const view = this.view;
		if (!this.box.clientWidth) return;
		if (view.width !== this.box.clientWidth || view.height !== this.box.clientHeight || this.scale !== devicePixelRatio) {
			view.width = this.box.clientWidth;
			view.height = this.box.clientHeight;
			this.scale = devicePixelRatio;
			this.pen = canvasPen(this.canvas, view.width, view.height);
		}
		view.top = this.box.scrollTop;
		view.colors = palette(this.box);
		draw(this.pen, this.model, view);
	}

	rowAt(clientY) {
		const row = Math.floor((clientY - this.box.getBoundingClientRect().top - this.box.clientTop - this.head + this.box.scrollTop) / this.view.row);
		return row >= 0 && row < this.model.events.length ? row : -1;
	}

	choose(row) {
		const {view} = this;
		view.chosen = row;
		if (row >= 0) {
			const y = row * view.row;
			if (y < this.box.scrollTop) this.box.scrollTop = y;
			else if (y + view.row + this.head > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = y + view.row + this.head + 8 - this.box.clientHeight;
		}
		this.tell();
		this.later();
	}

	// Along the actor's own line: step is 1 or -1.
	neighbour(step) {
		const event = this.model.events[this.view.chosen];
		return event ? this.model.rows[event.host][event.own - 1 + step] ?? this.view.chosen : 0;
	}

	key(event) {
		const {chosen} = this.view;
		const last = this.model.events.length - 1;
		const page = Math.max(1, Math.floor(this.box.clientHeight / this.view.row) - 2);
		const to = {
			ArrowDown: () => Math.min(last, chosen + 1), ArrowUp: () => Math.max(0, chosen - 1), ArrowRight: () => this.neighbour(1),
			ArrowLeft: () => this.neighbour(-1), PageDown: () => Math.min(last, chosen + page), PageUp: () => Math.max(0, chosen - page),
			Home: () => 0, End: () => last, Escape: () => -1,
		}[event.key];
		if (event.ctrlKey || event.metaKey || event.altKey) return;
		if (to) this.choose(to());
		else if (event.key === '+') this.zoom(1.5);
		else if (event.key === '-') this.zoom(1 / 1.5);
		else if (event.key === '/') this.search.focus();
		else return;
		event.preventDefault();
	}

	// The chosen event stays where it is, else what is at the top.
	zoom(factor) {
		const {view, box} = this;
		const row = Math.max(ROW_LEAST, Math.min(ROW_MOST, Math.round(view.row * factor)));
		const held = view.chosen >= 0 ? view.chosen : box.scrollTop / view.row;
		const offset = held * view.row - box.scrollTop;
		view.row = row;
		this.size();
		box.scrollTop = held * row - offset;
	}

	find() {
		const words = this.search.value.toLowerCase();
		const {events, hosts} = this.model;
		this.view.found = new Set(words ? events.flatMap((event, row) => `${hosts[event.host]}: ${event.text}`.toLowerCase().includes(words) ? [row] : []) : []);
		this.foundNote.textContent = words ? `${this.view.found.size} found, Enter goes on` : '';
		this.later();
	}

	findNext(step) {
		const rows = [...this.view.found];
		const next = step > 0 ? rows.find(row => row > this.view.chosen) ?? rows[0] : rows.findLast(row => row < this.view.chosen) ?? rows.at(-1);
		if (next !== undefined) this.choose(next);
	}

	// What the chosen event is, in words: for those who do not see colors, or nothing at all.
	tell() {
		const {model, view, chosen: box} = this;
		const event = model.events[view.chosen];
		box.replaceChildren();
		for (const name of ['before', 'after', 'beside']) delete box.dataset[name];
		if (!event) {
			box.append(el('p.dim', 'Choose an event to see what was before it, what after it, and what neither: concurrent with it.'));
			return;
		}
		const counts = {before: 0, after: 0, beside: 0, chosen: 0};
		model.events.forEach((_, row) => counts[relation(model, view.chosen, row)]++);
		Object.assign(box.dataset, {row: view.chosen, before: counts.before, after: counts.after, beside: counts.beside});
		const clock = model.hosts.flatMap((name, host) => model.clocks[view.chosen * model.width + host] ? [`${name}:${model.clocks[view.chosen * model.width + host]}`] : []);
		box.append(el('p', el('strong', `${model.hosts[event.host]} ${event.own}: `), event.text),
			el('p', el('span.before', `↑ ${counts.before} before`), ', ', el('span.after', `↓ ${counts.after} after`), ', ', el('span.beside', `∥ ${counts.beside} concurrent`)),
			el('p.mono', `[${clock.join(', ')}]`));
	}

	// Paper does not scroll: strips of some rows each, which may stand on pages of their own.
	print() {
		const {model} = this;
		const rows = Math.min(model.events.length, PAPER_MOST);
		const width = 1000;
		this.paper.replaceChildren();
		for (let first = 0; first < rows; first += PAPER_ROWS) {
			const height = layout(model, width).head + Math.min(PAPER_ROWS, rows - first) * ROW_FIRST;
			const canvas = el('canvas');
			draw(canvasPen(canvas, width, height), model, {...this.view, row: ROW_FIRST, top: first * ROW_FIRST, width, height, colors: palette(this.paper)});
			canvas.style.height = '';
			this.paper.append(canvas);
		}
		if (rows < model.events.length) this.paper.append(el('p', `The first ${rows} of ${model.events.length} events.`));
	}
}

function diagram(trace) {
	return new Diagram(trace).parts();
}
