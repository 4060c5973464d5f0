import FerryConformance
import FerryProtocol

// Devices whose rows are in tables of PostgreSQL as well.
extension World {
  /// Makes the last devices mirrors. Half of them adopt a company's tables.
  func addMirrors(in database: String) {
    var random = SeededRandom(seed, "adoptions")
    for (place, device) in devices.suffix(options.mirrors).enumerated() {
      let adopts = random.chance(1, in: 2)
      // Rules and sequences need a company.
      let mustAdopt = place == 0 && (options.companyRules > 0 || options.hasOrders)
      device.mirrorTables(in: database, adopts: adopts || mustAdopt)
      device.mirror?.mayRedefine = { [weak self] in
        self?.devices.compactMap(\.mirror).allSatisfy { $0.plan != nil } ?? false
      }
    }
  }

  func judgeMirrors(of space: SpaceName, _ server: ServerEvidence) throws {
    for device in devices where device.space == space {
      guard let mirror = device.mirror else { continue }
      let evidence = device.look(at: device.ledgers[0], isApart: true) {
        Result { [file = $0] in try mirror.evidence(in: file) }
      }
      guard var evidence = try evidence?.get() else { continue }
      evidence.forgets = skipped.milliseconds > 0
      report(
        MirrorSides.judge(device.name, evidence, server, serverWentBack: serverWentBack),
        by: device.name)
    }
  }
}
