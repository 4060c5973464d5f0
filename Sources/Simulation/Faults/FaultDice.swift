import Conformance

/// What can go wrong by chance, each time that something is done.
package enum ChanceFault: String, Sendable, CaseIterable {
  // A message on the network.
  case drop, duplicate, corrupt, stall, slow, reset
  // A step in the storage.
  case diskFull, syncFailure, diskFailure, tornWrite
}

/// One fault that happened by chance: the `count`th roll for `kind` at `site`.
package struct FaultName: Hashable, Sendable, CustomStringConvertible {
  package let kind: ChanceFault
  package let site: String
  package let count: Int

  package var description: String { "\(kind.rawValue)@\(site)#\(count)" }

  package init(kind: ChanceFault, site: String, count: Int) {
    self.kind = kind
    self.site = site
    self.count = count
  }
}

/// Decides by the seed what goes wrong. Each kind at each site has a stream of its own, so that
/// leaving one fault out changes no other: a failing run can be shrunk.
// SAFETY: touched on the scheduler's thread only.
package final class FaultDice: @unchecked Sendable {
  /// Faults per million rolls.
  private let ratios: [ChanceFault: Int]
  private let seed: UInt64
  /// Where a run is being shrunk: what may happen, and nothing else.
  private let allowed: Set<FaultName>?
  private var sites: [String: Site] = [:]
  /// Those that happened, in order.
  package private(set) var happened: [FaultName] = []
  /// Whether anything may go wrong.
  package var isActive = true

  private final class Site {
    var counts = [Int](repeating: 0, count: ChanceFault.allCases.count)
    var streams: [UInt64]

    init(_ seed: UInt64, _ name: String) {
      streams = ChanceFault.allCases.map { kind in
        var random = SeededRandom(seed, "\(kind.rawValue)@\(name)")
        return random.next()
      }
    }
  }

  package init(seed: UInt64, ratios: [ChanceFault: Int], allowed: Set<FaultName>? = nil) {
    self.seed = seed
    self.ratios = ratios.filter { $0.value > 0 }
    self.allowed = allowed
  }

  /// Nothing goes wrong while `body` runs: it is the simulation's own look at things.
  package func quietly<T>(_ body: () throws -> T) rethrows -> T {
    let wasActive = isActive
    isActive = false
    defer { isActive = wasActive }
    return try body()
  }

  /// Whether `kind` happens now at `site`.
  package func roll(_ kind: ChanceFault, at site: String) -> Bool {
    guard isActive, let ratio = ratios[kind] else { return false }
    let state = sites[site] ?? Site(seed, site)
    sites[site] = state
    let index = kind.index
    state.counts[index] += 1
    let count = state.counts[index]
    if let allowed {
      let name = FaultName(kind: kind, site: site, count: count)
      guard allowed.contains(name) else { return false }
      happened.append(name)
      return true
    }
    var random = SeededRandom(state.streams[index] &+ UInt64(count) &* 0x2545_F491_4F6C_DD1D)
    guard random.chance(ratio, in: 1_000_000) else { return false }
    happened.append(FaultName(kind: kind, site: site, count: count))
    return true
  }
}

extension ChanceFault {
  fileprivate var index: Int {
    switch self {
    case .drop: 0
    case .duplicate: 1
    case .corrupt: 2
    case .stall: 3
    case .slow: 4
    case .reset: 5
    case .diskFull: 6
    case .syncFailure: 7
    case .diskFailure: 8
    case .tornWrite: 9
    }
  }
}
