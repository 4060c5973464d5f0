import FerryConformance
import FerryMissions
import FerryProtocol

/// The state shared by the devices of a world with missions.
// SAFETY: touched on the scheduler's thread only.
final class MissionSetting: @unchecked Sendable {
  let library: MissionLibrary
  let download: DownloadSettings
  let options: MissionOptions
  private var bench: MissionBench
  private let report: ([Violation], String) -> Void

  /// - Parameter report: Called with the oracles' violations, and the device's name.
  init(
    seed: UInt64, missions: Int, report: @escaping ([Violation], _ actor: String) -> Void
  ) {
    var random = SeededRandom(seed, "mission-settings")
    library = MissionLibrary(seed: seed, missions: missions)
    self.report = report
    var download = DownloadSettings()
    // As the product has it: the manager writes all content to the disk by itself.
    download.endsDurable = false
    download.connections = 1 + random.below(4)
    download.rangeBytes = [64 << 10, 128 << 10, 32 << 20][random.below(3)]
    download.wholeBytes = [32 << 10, 8 << 20][random.below(2)]
    download.checksWhole = random.chance(1, in: 3)
    download.marksFrom = [1_000, 1_000, 100_000, 1 << 20][random.below(4)]
    self.download = download
    var options = MissionOptions()
    options.missionsAtOnce = 1 + random.below(2)
    options.itemsAtOnce = 1 + random.below(4)
    options.versionsKept = [1, 2, 2, 3][random.below(4)]
    self.options = options
    bench = MissionBench(
      marksFrom: download.marksFrom, transfers: download.connections,
      arrivalMax: BlobConnection.partBytes)
  }

  func notify(_ event: MissionRunEvent, by actor: String) {
    let found = bench.see(event)
    if !found.isEmpty { report(found, actor) }
  }

  func judge(_ final: FinalMissionEvidence) -> [Violation] { bench.judge(final) }
}
