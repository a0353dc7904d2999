// Reads the figures every two seconds while the page is in front, and shows them. Names come
// from the program, and are text everywhere.
'use strict';

(() => {
	const every = 2000; // milliseconds
	const most = 900; // points of the chart
	const suspectsEvery = 5; // a read of the suspects looks at every owner
	const rowsShown = 100;
	const body = document.body;
	const at = id => document.getElementById(id);
	const make = (tag, className, text) => {
		const el = document.createElement(tag);
		if (className) el.className = className;
		if (text !== undefined) el.textContent = text;
		return el;
	};
	const svg = (tag, attributes, text) => {
		const el = document.createElementNS('http://www.w3.org/2000/svg', tag);
		for (const [name, value] of Object.entries(attributes)) el.setAttribute(name, value);
		if (text !== undefined) el.textContent = text;
		return el;
	};

	// value returns the figure of a metric in a row of a table, and 0 if there is none.
	const value = (table, row, metric) => row.values[table.metrics.findIndex(m => m.name === metric)] || 0;
	const bytes = n => {
		const units = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']];
		const [unit, name] = units.find(([u]) => n >= u) || [1, 'B'];
		return +(n / unit).toPrecision(3) + ' ' + name;
	};

	// meters say how much of what a row has, for a bar beside the figures.
	const meters = {
		resident: {head: 'share', of: (t, r) => {
			const all = t.rows.find(x => x.labels[0] === 'resident in all');
			return [r.values[0], all ? all.values[0] : Math.max(...t.rows.map(x => x.values[0]))];
		}},
		mappings: {head: 'share', of: (t, r) => [r.values[0], Math.max(...t.rows.map(x => x.values[0]))]},
		classes: {head: 'waste', much: 0.5, of: (t, r) => {
			const waste = value(t, r, 'cheap_class_waste_bytes');
			return [waste, waste + value(t, r, 'cheap_class_allocated_bytes')];
		}},
		accounts: {head: 'of the limit', much: 0.8, of: (t, r) => [value(t, r, 'cheap_account_held_bytes'), value(t, r, 'cheap_account_limit_bytes')]},
		pools: {head: 'by the collector', much: 0.5, of: (t, r) => [value(t, r, 'cheap_pool_collected_total'), value(t, r, 'cheap_pool_released_total')]},
		libraries: {head: 'share', of: (t, r) => {
			const live = x => value(t, x, 'cheap_cmem_library_live_bytes');
			return [live(r), t.rows.reduce((sum, x) => sum + live(x), 0)];
		}},
		heaps: {head: 'of the limit', much: 0.8, of: (t, r) => [value(t, r, 'cheap_heap_held_bytes'), value(t, r, 'cheap_heap_limit_bytes')]},
	};

	// order says by which metric rows are sorted, the largest first.
	const order = {libraries: 'cheap_cmem_library_live_bytes', accounts: 'cheap_account_held_bytes', pools: 'cheap_pool_live_bytes', heaps: 'cheap_heap_held_bytes'};

	// brief says how many columns of a table are shown before all are asked for.
	const brief = {heaps: 6, classes: 5, pools: 3};

	// used says which metric is zero in a row that is folded; in other tables all that are shown are.
	const used = {classes: 'cheap_class_blocks'};

	// zeroColumns are the tables of which a column is left out if all of it is zero, such as what is swapped out.
	const zeroColumns = new Set(['resident', 'mappings']);

	const unfolded = new Set(); // tables, of which all is shown: 'zeros heaps', 'columns heaps'

	// folds shows buttons that show what a table leaves out.
	const folds = (table, left) => {
		const el = document.getElementById(table).querySelector('.folds');
		el.hidden = left.length === 0;
		el.replaceChildren(...left.map(([what, more, less]) => {
			const key = what + ' ' + table;
			const button = make('button', '', unfolded.has(key) ? less : more);
			button.type = 'button';
			button.setAttribute('aria-expanded', String(unfolded.has(key)));
			button.onclick = () => {
				if (!unfolded.delete(key)) unfolded.add(key);
				update();
			};
			return button;
		}));
	};

	const meterCell = (meter, table, row) => {
		const cell = make('td', 'meter');
		const [part, all] = meter.of(table, row);
		if (!(all > 0)) return cell;
		const share = Math.min(part / all, 1);
		const bar = svg('svg', {role: 'img', 'aria-label': Math.round(100 * share) + ' %', preserveAspectRatio: 'none', viewBox: '0 0 100 9'});
		bar.append(svg('rect', {width: 100 * share, height: 9, class: meter.much && share >= meter.much ? 'much' : ''}));
		cell.append(bar);
		return cell;
	};

	// figure is a cell with a value, which is also there as it is.
	const figure = (row, i, name) => {
		const cell = make('td', 'n', row.text[i]);
		cell.dataset.value = row.values[i];
		if (name) cell.dataset.head = name;
		return cell;
	};

	const head = cells => {
		const line = make('tr');
		for (const [text, help, className] of cells) {
			const cell = make('th', className, text);
			cell.scope = 'col';
			if (help) cell.title = help;
			line.append(cell);
		}
		return line;
	};

	// list shows a table without labels: a line for each metric. Those of zero are folded.
	const list = (table, tbody) => {
		const row = table.rows[0];
		const all = unfolded.has('zeros ' + table.name);
		const zeros = row.values.filter(n => n === 0).length;
		tbody.replaceChildren(...table.metrics.map((m, i) => {
			const line = make('tr', 'item');
			line.hidden = row.values[i] === 0 && !all;
			line.append(Object.assign(make('th', '', m.head), {scope: 'row', title: m.name}), figure(row, i), make('td', 'help', m.help));
			return line;
		}));
		folds(table.name, zeros > 0 ? [['zeros', 'Show ' + zeros + ' that are zero', 'Hide those that are zero']] : []);
	};

	const show = table => {
		const el = document.querySelector('[data-table="' + table.name + '"]');
		if (!el) return;
		const key = el.closest('article').querySelector('.key');
		if (table.note) {
			key.hidden = false;
			key.textContent = table.note;
			return;
		}
		if (table.labels.length === 0) {
			if (table.rows.length > 0) list(table, el.tBodies[0]);
			return;
		}
		if (table.rows.length === 0) {
			el.tHead.replaceChildren();
			el.tBodies[0].replaceChildren();
			folds(table.name, []);
			key.hidden = false;
			key.textContent = 'There are none.';
			return;
		}
		const meter = meters[table.name];
		const most = brief[table.name] || table.metrics.length;
		const wide = unfolded.has('columns ' + table.name), all = unfolded.has('zeros ' + table.name);
		const heads = head([
			...table.labels.map(name => [name]),
			...(meter ? [[meter.head]] : []),
			...table.metrics.map(m => [m.head, m.name + ': ' + m.help, 'n']),
		]);
		const none = i => zeroColumns.has(table.name) && table.rows.every(row => row.values[i] === 0);
		const cut = line => table.metrics.forEach((_, i) => {
			line.cells[line.cells.length - table.metrics.length + i].hidden = i >= most && !wide || none(i);
		});
		cut(heads);
		el.tHead.replaceChildren(heads);
		const rows = [...table.rows];
		const by = order[table.name];
		if (by) rows.sort((a, b) => value(table, b, by) - value(table, a, by));
		let zeros = 0;
		el.tBodies[0].replaceChildren(...rows.slice(0, rowsShown).map(row => {
			const line = make('tr', row.labels[0] === 'resident in all' ? 'sum' : '');
			const zero = used[table.name] ? value(table, row, used[table.name]) === 0 : row.values.slice(0, most).every(n => n === 0);
			if (zero) zeros++;
			line.hidden = zero && !all;
			row.labels.forEach((label, i) => line.append(i === 0 ? Object.assign(make('th', '', label), {scope: 'row'}) : Object.assign(make('td', '', label), {title: table.labels[i]})));
			row.labels.forEach((_, i) => { if (i > 0) line.cells[i].dataset.head = table.labels[i]; });
			if (meter) line.append(meterCell(meter, table, row));
			row.values.forEach((_, i) => line.append(figure(row, i, table.metrics[i].head)));
			cut(line);
			return line;
		}));
		const left = [];
		if (zeros > 0) left.push(['zeros', 'Show ' + zeros + (zeros === 1 ? ' row' : ' rows') + ' with nothing in use', 'Hide rows with nothing in use']);
		if (most < table.metrics.length) left.push(['columns', 'Show ' + (table.metrics.length - most) + ' more columns', 'Hide columns']);
		folds(table.name, left);
		key.hidden = rows.length <= rowsShown;
		key.textContent = rowsShown + ' of ' + rows.length + ' are shown. The text and the JSON have all.';
	};

	// The frames of a stack are pairs of lines: a function, and where in it.
	const framesShown = 3;
	const functions = stack => stack.split('\n').filter(l => l && !l.startsWith('\t')).map(f => f.slice(f.lastIndexOf('/') + 1));
	const opened = new Set(); // the suspects whose whole stack is shown
	const shown = new Set(); // those that were among the largest
	const thousands = n => n.toLocaleString('en-US');

	// folded shows the innermost functions of a stack, and all of it when it is opened.
	const folded = (key, names, stack) => {
		const whole = make('details');
		whole.append(make('summary', '', names.slice(0, framesShown).join(' ← ') + (names.length > framesShown ? ' ← …' : '')), make('pre', '', stack));
		whole.open = opened.has(key);
		whole.ontoggle = () => { if (whole.open) opened.add(key); else opened.delete(key); };
		return whole;
	};

	// stackOf shows a suspect's stack, and its last uses.
	const stackOf = s => {
		if (!s.stack) return make('td', 'stack help', 'not recorded');
		const cell = make('td', 'stack');
		const whole = folded([s.pool, s.label, s.stack].join('\n'), functions(s.stack), s.stack);
		if (s.missing_close) whole.firstChild.append(' ', make('b', 'missing', 'a Close is missing'));
		(s.uses || []).forEach((use, i) => {
			whole.append(i === 0 ? 'one of them was last used by' : 'and before by', make('pre', '', use));
		});
		cell.append(whole);
		return cell;
	};

	const showLargest = report => {
		at('largest').replaceChildren(...report.largest.map((s, i) => {
			const key = 'largest\n' + s.stack;
			if (i === 0 && !shown.has(key)) opened.add(key); // until somebody closes it
			shown.add(key);
			const item = make('li');
			item.append(Object.assign(make('a', '', s.line), {href: '#' + s.table}), make('span', '', s.text));
			if (s.stack) item.append(folded(key, cNames(s), s.stack));
			return item;
		}));
		if (report.largest.length === 0) at('largest').replaceChildren(make('li', 'none', report.none));
	};

	const showSuspects = report => {
		const el = document.querySelector('[data-table=suspects]');
		const all = report.suspects;
		el.tHead.replaceChildren(...(all.length === 0 ? [] : [head([
			['pool'], ['label', 'what Owner.SetLabel has set'],
			['open', 'owners that are open', 'n'], ['bytes', 'the sizes of their resources', 'n'],
			['by the collector', 'owners of the stack that the collector had to release, whatever their labels are', 'n'],
			['made by', 'the innermost functions; all of the stack when it is opened'],
		])]));
		el.tBodies[0].replaceChildren(...all.slice(0, rowsShown).map(s => {
			const line = make('tr');
			line.append(Object.assign(make('th', '', s.pool), {scope: 'row'}), make('td', 'label', s.label || ''));
			if (s.label) line.cells[1].dataset.head = 'label';
			for (const [name, n, text] of [['open', s.live, thousands(s.live)], ['bytes', s.bytes, bytes(s.bytes)], ['by the collector', s.collected || 0, thousands(s.collected || 0)]]) {
				const cell = make('td', 'n', text);
				cell.dataset.value = n;
				cell.dataset.head = name;
				line.append(cell);
			}
			line.append(stackOf(s));
			return line;
		}));
		el.closest('article').querySelectorAll('.key').forEach(key => {
			key.hidden = all.length > 0 && all.length <= rowsShown;
			key.textContent = all.length === 0 ? 'There are none.' : rowsShown + ' of ' + all.length + ' are shown. The text and the JSON have all.';
		});
		at('advice').hidden = !report.advice;
		at('advice').textContent = report.advice || '';
		showLargest(report);
		body.dataset.suspects = Number(body.dataset.suspects) + 1;
	};

	// callsOf shows a stack of C and Go: the innermost functions that have a name, but for those between them
	// that all stacks have, and all of it when it is opened.
	const callsOf = (s, alike) => {
		const cell = make('td', 'stack');
		cell.append(folded(s.stack, cNames(s).filter((name, i) => i === 0 || !alike.has(name)), s.stack));
		return cell;
	};

	// cNames returns the functions of a stack of C and Go that have a name. A stack may begin with the line that
	// is to blame, and "by way of".
	const cNames = s => functions(s.stack).filter(name => name !== 'by way of' && !name.includes('+0x') && !name.includes('._Cfunc_') && !name.startsWith('_cgo_'));

	const readGrowth = async () => {
		const el = document.querySelector('[data-table=growth]');
		if (!el) return;
		const answer = await fetch('growth.json', {cache: 'no-store', credentials: 'same-origin'});
		if (!answer.ok) throw new Error(answer.status + ' ' + answer.statusText);
		const report = await answer.json();
		const all = report.suspects;
		el.tHead.replaceChildren(...(all.length === 0 ? [] : [head([
			['library'], ['in use', 'bytes, an estimate', 'n'], ['grown by', 'bytes in ' + report.seconds + ' seconds, an estimate', 'n'],
			['its error', 'the standard deviation of what it has grown by, at most', 'n'],
			['allocated by', 'the innermost functions that have a name; all of the stack when it is opened'],
		])]));
		// Rows say what differs: not which functions of C all of several stacks have, such as malloc's callers.
		const alike = new Set(all.length < 2 ? [] : cNames(all[0]).slice(1).filter(name => all.every(s => cNames(s).includes(name))));
		el.tBodies[0].replaceChildren(...all.slice(0, rowsShown).map(s => {
			const line = make('tr');
			line.append(Object.assign(make('th', '', s.library), {scope: 'row'}));
			for (const [name, n] of [['in use', s.live], ['grown by', s.grown], ['its error', s.error]]) {
				const cell = make('td', 'n', bytes(n));
				cell.dataset.value = n;
				cell.dataset.head = name;
				line.append(cell);
			}
			line.append(callsOf(s, alike));
			return line;
		}));
		const key = el.closest('article').querySelector('.key');
		key.hidden = all.length > 0 && all.length <= rowsShown;
		key.textContent = report.note || (all.length === 0 ? 'There are none.' : rowsShown + ' of ' + all.length + ' are shown. The text and the JSON have all.');
		body.dataset.growth = Number(body.dataset.growth || 0) + 1;
	};

	const readSuspects = async query => {
		const answer = await fetch('suspects.json' + query, {cache: 'no-store', credentials: 'same-origin'});
		if (!answer.ok) throw new Error(answer.status + ' ' + answer.statusText);
		showSuspects(await answer.json());
	};

	let overview; // as it was read last
	const points = []; // {at, values}, since the program has the page

	// swatch is a square in the color of part i.
	const swatch = i => {
		const el = svg('svg', {width: 10, height: 10, 'aria-hidden': 'true'});
		el.append(svg('rect', {width: 10, height: 10, rx: 2, class: 'f' + i}));
		return el;
	};

	// drawBar draws the parts of now as one bar, with the limit as a line.
	const drawBar = () => {
		const all = Math.max(overview.resident, overview.limit || 0, 1);
		const picture = svg('svg', {viewBox: '0 0 1000 30', preserveAspectRatio: 'none', role: 'img', 'aria-label': at('sum').textContent});
		let x = 0;
		overview.parts.forEach((p, i) => {
			const width = 1000 * p.bytes / all;
			picture.append(svg('rect', {x: x, y: 3, width: width, height: 24, class: 'f' + i}));
			x += width;
		});
		if (overview.limit) {
			const at = 1000 * overview.limit / all;
			for (const of of ['under', 'limit']) picture.append(svg('line', {class: of, x1: at, x2: at, y1: 0, y2: 30}));
		}
		at('bar').replaceChildren(picture);
		const entries = overview.legend.map(l => {
			const entry = make('span');
			if (l.part >= 0) entry.append(swatch(l.part));
			entry.append(l.name + ' ', make('b', '', l.text));
			return entry;
		});
		at('legend').replaceChildren(...entries);
	};

	// draw draws the parts as areas on each other over the time since the first point.
	const draw = () => {
		const box = at('chart');
		const width = Math.max(box.clientWidth, 200), height = innerWidth <= 700 ? 130 : 210;
		const left = 62, right = 8, top = 8, bottom = 22;
		const sums = points.map(sum);
		let high = Math.max(1024, ...sums);
		if (overview.limit && overview.limit < 2 * high) high = Math.max(high, overview.limit);
		const step = 2 ** Math.ceil(Math.log2(high / 5));
		const max = step * Math.ceil(high / step);
		const first = points[0].at, span = Math.max(points[points.length - 1].at - first, 30000);
		const x = t => left + (width - left - right) * (t - first) / span;
		const y = n => height - bottom - (height - top - bottom) * n / max;
		const picture = svg('svg', {viewBox: '0 0 ' + width + ' ' + height, 'aria-hidden': 'true'});
		for (let n = 0; n <= max; n += step) {
			picture.append(svg('line', {class: 'grid', x1: left, x2: width - right, y1: y(n), y2: y(n)}),
				svg('text', {x: left - 8, y: y(n) + 4, 'text-anchor': 'end'}, n === 0 ? '0' : bytes(n)));
		}
		const room = width < 560 ? 3 : 6;
		const stride = 1000 * ([5, 10, 30, 60, 120, 300, 600, 1800, 3600].find(s => span / 1000 / s <= room) || 6 * 3600);
		for (let t = Math.ceil(first / stride) * stride; t <= first + span; t += stride) {
			if (x(t) > left + 20 && x(t) < width - 25) picture.append(svg('text', {x: x(t), y: height - 6, 'text-anchor': 'middle'}, clock(t, stride)));
		}
		const above = points.map(() => 0);
		overview.parts.forEach((_, i) => {
			if (points.every(p => !p.values[i])) return;
			const low = points.map((p, k) => x(p.at).toFixed(1) + ',' + y(above[k]).toFixed(1)).reverse();
			const high = points.map((p, k) => x(p.at).toFixed(1) + ',' + y(above[k] += p.values[i] || 0).toFixed(1));
			picture.append(svg('polygon', {class: 'f' + i, points: high.concat(low).join(' ')}));
		});
		if (overview.limit && overview.limit <= max) {
			for (const of of ['under', 'limit']) picture.append(svg('line', {class: of, x1: left, x2: width - right, y1: y(overview.limit), y2: y(overview.limit)}));
			picture.append(svg('text', {class: 'named', x: width - right, y: y(overview.limit) + (y(overview.limit) < 20 ? 14 : -5), 'text-anchor': 'end'}, 'limit ' + bytes(overview.limit)));
		}
		box.replaceChildren(picture);
		box.onpointermove = event => { // says what there was then
			const t = first + span * (event.clientX - box.getBoundingClientRect().left - left) / (width - left - right);
			const p = points.reduce((a, b) => Math.abs(b.at - t) < Math.abs(a.at - t) ? b : a);
			const parts = overview.parts.map((part, i) => [part.name, p.values[i]]).sort((a, b) => b[1] - a[1]).slice(0, 3);
			at('since').textContent = clock(p.at, 0) + ': resident ' + bytes(sum(p)) + '; ' + parts.map(([name, n]) => name + ' ' + bytes(n)).join('; ');
			picture.querySelectorAll('.at').forEach(line => line.remove());
			picture.append(svg('line', {class: 'at', x1: x(p.at), x2: x(p.at), y1: top, y2: height - bottom}));
		};
		box.onpointerleave = () => {
			since();
			picture.querySelectorAll('.at').forEach(line => line.remove());
		};
		if (!box.matches(':hover')) since();
	};

	const sum = p => p.values.reduce((a, b) => a + b, 0);
	const clock = (t, stride) => new Date(t).toLocaleTimeString([], {hour: '2-digit', minute: '2-digit', second: stride < 60000 ? '2-digit' : undefined, hourCycle: 'h23'});

	// since says above the chart by how much what is resident has changed, and which part the most.
	const since = () => {
		const a = points[0], z = points[points.length - 1], seconds = Math.round((z.at - a.at) / 1000);
		if (seconds === 0) return;
		const by = n => (n < 0 ? '−' : '+') + bytes(Math.abs(n));
		const changed = overview.parts.map((p, i) => [p.name, z.values[i] - (a.values[i] || 0)]).sort((x, y) => Math.abs(y[1]) - Math.abs(x[1]))[0];
		at('since').textContent = 'Resident memory: ' + by(sum(z) - sum(a)) + ' in ' + (seconds < 120 ? seconds + ' s' : Math.round(seconds / 60) + ' min') +
			(Math.abs(changed[1]) > 1 << 20 ? '; ' + changed[0] + ' ' + by(changed[1]) : '');
	};

	// ways are words of the verdict and of warnings, and where the page has what they speak of.
	const ways = [
		['the profile of module cmem', 'cmem'], ['suspects.txt of its page', '#suspects'], ['inspect.WriteHeap', 'heap'],
		['the table mappings', '#mappings'], ['the table classes', '#classes'], ['Pools declare', '#pools'], ['The limit of pace', '#pace'], ['The limit of the container', '#process'],
	];

	// linked shows a text, with links for the words that the page has a way for.
	const linked = (el, text) => {
		el.replaceChildren();
		for (let left = text; left;) {
			const found = ways.map(([words, to]) => ({words, to, i: left.indexOf(words)})).filter(w => w.i >= 0 && to(w)).sort((a, b) => a.i - b.i)[0];
			if (!found) {
				el.append(left);
				break;
			}
			el.append(left.slice(0, found.i), Object.assign(make('a', '', found.words), {href: found.to}));
			left = left.slice(found.i + found.words.length);
		}
		return el;
	};
	const to = w => document.querySelector(w.to.startsWith('#') ? w.to : '#downloads a[href="' + w.to + '"]');

	const showOverview = (o, verdict) => {
		at('sentence').textContent = o.sentence;
		at('overview').classList.toggle('fault', o.fault);
		linked(at('do'), o.next);
		at('warnings').hidden = o.warnings.length === 0;
		at('warnings').replaceChildren(...o.warnings.map(text => linked(make('li'), text)));
		overview = o;
		at('sum').textContent = o.resident === 0 ? 'The system does not say what is resident.' :
			'Resident ' + bytes(o.resident) + (o.limit ? ', limit ' + bytes(o.limit) + ' (' + o.limit_of + ')' : ', no limit');
		at('decision').textContent = o.pace ? 'Pace: ' + o.pace + '.' : '';
		drawBar();
		body.dataset.verdict = verdict.about;
	};

	let paused = false, turns = 0, told;

	const update = async () => {
		if (body.dataset.asking) return;
		body.dataset.asking = 'all.json';
		try {
			const answer = await fetch('all.json', {cache: 'no-store', credentials: 'same-origin'});
			if (!answer.ok) throw new Error(answer.status + ' ' + answer.statusText);
			const report = await answer.json();
			showOverview(report.overview, report.verdict);
			points.push({at: Date.parse(report.time), values: report.overview.parts.map(p => p.bytes)});
			if (points.length > most) points.splice(0, points.length, ...points.filter((_, i) => i % 2 === 0)); // the whole time is kept
			report.tables.forEach(show);
			draw();
			if (turns++ % suspectsEvery === 0 || told !== report.verdict.about) {
				told = report.verdict.about; // the suspects are to fit to it
				await readSuspects('');
				await readGrowth();
			}
			at('state').textContent = 'Read at ' + new Date(report.time).toLocaleTimeString() + '.';
			at('problem').hidden = true;
			body.dataset.updates = Number(body.dataset.updates) + 1;
		} catch (error) {
			at('problem').textContent = 'The figures are old: the program does not answer (' + error.message + ').';
			at('problem').hidden = false;
		} finally {
			delete body.dataset.asking;
		}
	};

	at('pause').onclick = () => {
		paused = !paused;
		at('pause').textContent = paused ? 'Go on' : 'Pause';
		at('pause').setAttribute('aria-pressed', String(paused));
		if (!paused) update();
	};
	at('trim').onclick = async () => {
		at('trim').disabled = true;
		try {
			const answer = await fetch('trim', {method: 'POST', credentials: 'same-origin'});
			at('trimmed').textContent = answer.ok ? 'Idle memory was given back.' : 'Refused: ' + await answer.text();
			await update();
		} catch (error) {
			at('trimmed').textContent = 'The program does not answer.';
		}
		at('trim').disabled = false;
	};
	at('collect').onclick = async () => {
		at('collect').disabled = true;
		try {
			await readSuspects('?gc=1');
			at('collected').textContent = 'Collected at ' + new Date().toLocaleTimeString() + '.';
		} catch (error) {
			at('collected').textContent = 'The program does not answer (' + error.message + ').';
		}
		at('collect').disabled = false;
	};
	let drawn = 0;
	new ResizeObserver(() => {
		if (at('chart').clientWidth === drawn || !overview) return;
		drawn = at('chart').clientWidth;
		draw();
	}).observe(at('chart'));
	const begin = async () => {
		try {
			const answer = await fetch('history.json', {cache: 'no-store', credentials: 'same-origin'});
			if (answer.ok) points.push(...(await answer.json()).map(p => ({at: Date.parse(p.time), values: p.values})));
		} catch (error) {
			// update says what is wrong
		}
		update();
	};
	setInterval(() => { if (!paused && !document.hidden) update(); }, every);
	begin();
})();
