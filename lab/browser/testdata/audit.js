// Checks the page as a reader sees it: what is drawn, and what overlaps. The value
// is JSON that tab_test.go reads.
(() => {
	const doc = document.documentElement;
	const overlaps = (a, b, slack) =>
		Math.min(a.right, b.right) - Math.max(a.left, b.left) > slack &&
		Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > slack;
	const boxOf = r => ({left: r.left, right: r.right, top: r.top, bottom: r.bottom});

	// clipped returns what is seen of a box in what scrolls, or null.
	const clipped = (box, el) => {
		const scroll = el.closest('.scroll');
		if (!scroll) return box;
		const s = scroll.getBoundingClientRect();
		const left = Math.max(box.left, s.left), right = Math.min(box.right, s.right);
		return left < right ? Object.assign({}, box, {left, right}) : null;
	};

	// texts are the boxes of all lines of text that are seen.
	const texts = [];
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) {
		const node = walker.currentNode, el = node.parentElement;
		if (!node.textContent.trim() || el.closest('script, style, noscript') || !el.checkVisibility({visibilityProperty: true})) continue;
		let rects;
		if (el instanceof SVGElement) {
			rects = [el.getBoundingClientRect()];
		} else {
			const range = document.createRange();
			range.selectNodeContents(node);
			rects = [...range.getClientRects()];
		}
		for (const r of rects) {
			const box = clipped(boxOf(r), el);
			// Boxes of lines are higher than what is written in them.
			if (box && r.width > 0) texts.push(Object.assign(box, {text: node.textContent.trim(), svg: el.closest('svg'), code: el.closest('pre')}));
		}
	}
	const problems = [];
	texts.sort((a, b) => a.top - b.top);
	texts.forEach((a, i) => {
		for (let j = i + 1; j < texts.length && texts[j].top < a.bottom; j++) {
			if (overlaps(a, texts[j], 1.5)) problems.push(`${a.text} lies over ${texts[j].text}`);
		}
		if (a.right > doc.clientWidth + 1 || a.left < -1) problems.push(`${a.text} is beside the page`);
		if (a.text.includes('…') && !a.code) problems.push(`${a.text} is cut`);
		if (a.svg) {
			const s = a.svg.getBoundingClientRect();
			if (a.left < s.left - 1 || a.right > s.right + 1 || a.top < s.top - 1 || a.bottom > s.bottom + 1) problems.push(`${a.text} leaves its chart`);
		}
	});
	if (doc.scrollWidth > doc.clientWidth) problems.push(`the page is ${doc.scrollWidth} wide, the window ${doc.clientWidth}`);

	const rgb = color => {
		const el = document.body.appendChild(document.createElement('i'));
		el.style.color = color;
		const value = getComputedStyle(el).color;
		el.remove();
		return value;
	};

	const charts = [...document.querySelectorAll('[data-chart]')].map(box => {
		const part = box.closest('.part');
		const instance = echarts.getInstanceByDom(box);
		const frame = box.getBoundingClientRect();
		const shapes = [...box.querySelectorAll('svg path')].map(el => {
			const style = getComputedStyle(el);
			return {box: boxOf(el.getBoundingClientRect()), paint: [style.fill, style.stroke]};
		});
		const count = {measured: 0, published: 0};
		const marks = [];
		for (const [i, s] of instance.getOption().series.entries()) {
			if (s.type === 'custom' || s.silent) continue;
			const paintOf = d => rgb((d.itemStyle || s.itemStyle).color);
			for (const d of s.data) {
				const point = d.point, paint = paintOf(d);
				const bar = s.type === 'bar', dot = s.type === 'scatter' && s.name === 'measured here';
				const value = bar ? [d.value, point.x] : d.value;
				const [x, y] = instance.convertToPixel({seriesIndex: i}, value);
				const at = {x: frame.left + x, y: frame.top + y + (d.symbolOffset ? d.symbolOffset[1] : 0)};
				// A bar ends at its figure, somewhere in its band; a symbol stands on it.
				const away = ({box}) => Math.abs((box.top + box.bottom) / 2 - at.y);
				const [shape] = shapes.filter(({box, paint: p}) => p.includes(paint) && (bar
					? Math.abs(box.right - at.x) < 1.5 && box.right > box.left
					: Math.abs((box.left + box.right) / 2 - at.x) < 1.5)).filter(s => away(s) < (bar ? 40 : 2)).sort((a, b) => away(a) - away(b));
				if (!shape) {
					problems.push(`${box.dataset.chart}: nothing is drawn for ${point.name} at ${value}`);
					continue;
				}
				const seen = shape.box;
				if (seen.left < frame.left - 1 || seen.right > frame.right + 1 || seen.top < frame.top - 1 || seen.bottom > frame.bottom + 1) {
					problems.push(`${box.dataset.chart}: ${point.name} is drawn beside the chart`);
				}
				marks.push({box: seen, name: point.name, lane: s.type === 'scatter'});
				const figure = bar ? d.value : d.value[0];
				const isMeasured = bar || dot;
				if (isMeasured && figure !== point.ns && point.ns > 0) problems.push(`${point.name} is ${point.ns}, drawn at ${figure}`);
				if (!isMeasured && !point.published.some(m => m.ns === figure)) problems.push(`${figure} of ${point.name} is not published`);
				count[isMeasured ? 'measured' : 'published']++;
			}
		}
		const words = texts.filter(t => t.svg && box.contains(t.svg));
		for (const m of marks) {
			for (const w of words) if (overlaps(m.box, w, 1.5)) problems.push(`the mark of ${m.name} lies over ${w.text}`);
		}
		// Published figures stand beside the bars, each in a lane of its own.
		if (marks.some(m => m.lane)) {
			marks.forEach((a, i) => marks.slice(i + 1).forEach(b => {
				if (overlaps(a.box, b.box, 1.5)) problems.push(`marks of ${a.name} and ${b.name} lie over each other`);
			}));
		}
		return Object.assign(count, {
			id: box.dataset.chart,
			part: part.querySelector('[data-legend]').dataset.legend,
			rows: part.querySelectorAll('tbody tr').length,
			publishedRows: part.querySelectorAll('tbody .pub').length,
			words: words.length,
			left: Math.round(frame.left + scrollX), top: Math.round(frame.top + scrollY),
			width: Math.round(frame.width), height: Math.round(frame.height),
		});
	});
	return JSON.stringify({charts, problems, texts: texts.length});
})()
