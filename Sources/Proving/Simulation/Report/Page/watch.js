// Runs first: it shows later errors on the page, and marks the page as broken.
"use strict";
window.addEventListener("error", (event) => {
  const alert = document.getElementById("script-error");
  alert.textContent = `The timeline is broken: ${event.message} (line ${event.lineno})`;
  alert.hidden = false;
  document.documentElement.dataset.state = "broken";
});
