// Draws the charts of the page, again whenever light turns to dark.
(() => {
  "use strict";
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  // The colours that the charts were made with, and what they are in the dark.
  const darkened = {
    "#1f6fb4": "#6cb2f5", "#c65d00": "#ff9d45", "#222222": "#e8eaed", "#8a8f98": "#8a919c",
    "#eef0f3": "#262b33",
  };

  const recoloured = (node, key) => {
    if (key === "values" || key === "datasets") return node; // data stay as they are
    if (typeof node === "string") return darkened[node] || node;
    if (Array.isArray(node)) return node.map((part) => recoloured(part));
    if (node === null || typeof node !== "object") return node;
    return Object.fromEntries(Object.entries(node).map(([k, v]) => [k, recoloured(v, k)]));
  };

  const look = (isDark) => {
    const ink = isDark ? "#e8eaed" : "#222222";
    const soft = isDark ? "#343a44" : "#e3e6ea";
    return {
      font: "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif",
      background: null,
      view: { stroke: null },
      axis: {
        labelColor: ink, titleColor: ink, gridColor: soft, domainColor: soft, tickColor: soft,
        titleFontWeight: "normal", titleFontSize: 13, labelFontSize: 12,
      },
      legend: {
        labelColor: ink, titleColor: ink, titleFontWeight: "normal", titleFontSize: 13,
        labelFontSize: 12, gradientLength: 180,
      },
    };
  };

  const draw = async (element) => {
    const { spec, renderer } = charts[element.dataset.chart];
    const isDark = dark.matches;
    const own = isDark ? recoloured(spec) : spec;
    try {
      await window.vegaEmbed(element, own, {
        renderer,
        actions: false,
        ast: true, // no code is made from text, so the page needs no permission for it
        defaultStyle: false,
        config: look(isDark),
        tooltip: { theme: "page", disableDefaultStyle: true },
      });
      element.dataset.drawn = isDark ? "dark" : "light";
    } catch (error) {
      element.dataset.failed = "";
      element.textContent = "This chart cannot be drawn here.";
      console.error(error);
    }
  };

  const drawAll = async () => {
    for (const element of document.querySelectorAll("[data-chart]")) await draw(element);
    document.documentElement.dataset.drawn = dark.matches ? "dark" : "light";
  };

  dark.addEventListener("change", drawAll);
  window.addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details")) folded.open = true;
  });
  drawAll();
})();
