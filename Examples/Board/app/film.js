const name = "board-film";

// A program without missions shows the board without its film.
const absent = ["not_granted", "unknown_service"];

/** Offers the film of the mission, and plays it from the device. */
export const showFilm = async (attempt) => {
  try {
    await followFilm(attempt);
  } catch (error) {
    if (!absent.includes(error.code)) throw error;
  }
};

const followFilm = async (attempt) => {
  const section = document.getElementById("film");
  const [line, button, video] = ["p", "button", "video"].map((tag) => section.querySelector(tag));
  button.addEventListener("click", () => attempt(() =>
    ferry.call("missions.download", { mission: name })));
  for await (const missions of ferry.watch("missions.list")) {
    const mission = missions.find((mission) => mission.mission === name);
    section.hidden = !mission;
    if (!mission) continue;
    button.hidden = mission.isDownloaded || mission.state === "downloading";
    line.textContent = mission.isDownloaded
      ? "The film is on this device and needs no network."
      : mission.state === "downloading"
        ? `Downloading, ${Math.floor(100 * mission.bytesDone / mission.bytesTotal)} %`
        : `A film of ${Math.ceil(mission.bytesTotal / 1024)} KiB, for offline use.`;
    if (mission.isDownloaded && video.hidden) {
      const files = await ferry.call("missions.files", { mission: name });
      const film = files.find((file) => file.type.startsWith("video/"));
      if (!film) continue;
      video.src = film.file;
      video.hidden = false;
    }
  }
};
