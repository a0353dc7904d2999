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

	return JSON.stringify({problems, texts: texts.length});
})()
