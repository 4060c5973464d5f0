import FerryConformance

/// A fault by chance, at each step.
package enum ChanceFault: String, Sendable, CaseIterable {
  // A message on the network.
  case drop, duplicate, corrupt, stall, slow, reset
  // A step in the storage.
  case diskFull, syncFailure, diskFailure, tornWrite
  // A process, at a step of the network or storage.
  case crash
  // A process, at a slice of its first list.
  case fillCrash
}

/// One fault by chance: the `count`th roll for `kind` at `site`.
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

/// Decides the faults by the seed. Each kind at each site has a separate stream, so leaving one
/// fault out changes no other. So a failing run can be shrunk.
// SAFETY: touched on the scheduler's thread only.
package final class FaultDice: @unchecked Sendable {
  /// Faults per million rolls, by the kinds' places.
  private let ratios: [Int]
  private let seed: UInt64
  /// The only permitted faults, while a run is being shrunk.
  private let allowed: Set<FaultName>?
  private var sites: [String: Site] = [:]
  /// The faults so far, in order.
  package private(set) var happened: [FaultName] = []
  /// True if any fault may happen.
  package var isActive = true

  /// A place of faults.
  // SAFETY: as the dice.
  package final class Site: @unchecked Sendable {
    package let name: String
    fileprivate var counts = [Int](repeating: 0, count: ChanceFault.allCases.count)
    fileprivate let streams: [UInt64]

    fileprivate init(_ seed: UInt64, _ name: String) {
      self.name = name
      streams = ChanceFault.allCases.map { kind in
        var random = SeededRandom(seed, "\(kind.rawValue)@\(name)")
        return random.next()
      }
    }
  }

  package init(seed: UInt64, ratios: [ChanceFault: Int], allowed: Set<FaultName>? = nil) {
    self.seed = seed
    self.ratios = ChanceFault.allCases.map { max(0, ratios[$0] ?? 0) }
    self.allowed = allowed
  }

  /// Runs `body` without faults: it is the simulation's own look at the state.
  package func quietly<T>(_ body: () throws -> T) rethrows -> T {
    let wasActive = isActive
    isActive = false
    defer { isActive = wasActive }
    return try body()
  }

  /// Returns the site of this name; callers with many rolls there keep it.
  package func site(_ name: String) -> Site {
    if let site = sites[name] { return site }
    let site = Site(seed, name)
    sites[name] = site
    return site
  }

  /// Returns whether `kind` happens now at `site`.
  package func roll(_ kind: ChanceFault, at site: String) -> Bool {
    isActive && ratios[kind.index] > 0 && roll(kind, at: self.site(site))
  }

  /// Returns whether `kind` happens now at `site`.
  package func roll(_ kind: ChanceFault, at site: Site) -> Bool {
    let index = kind.index
    let ratio = ratios[index]
    guard isActive, ratio > 0 else { return false }
    site.counts[index] += 1
    let count = site.counts[index]
    if let allowed {
      let name = FaultName(kind: kind, site: site.name, count: count)
      guard allowed.contains(name) else { return false }
      happened.append(name)
      return true
    }
    var random = SeededRandom(site.streams[index] &+ UInt64(count) &* 0x2545_F491_4F6C_DD1D)
    guard random.chance(ratio, in: 1_000_000) else { return false }
    happened.append(FaultName(kind: kind, site: site.name, count: count))
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
    case .crash: 10
    case .fillCrash: 11
    }
  }
}
