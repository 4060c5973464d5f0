import FerryConformance

/// Finds a small part of a failing run with the same failure. It leaves out users' actions, planned
/// faults and faults by chance, as long as the same oracle reports a violation.
///
/// Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002.
package struct Shrinker {
  /// One thing to leave out.
  private enum Element {
    case action(PlannedAction)
    case fault(PlannedFault)
    case chance(FaultName)
    case mission(PlannedMission)
    case bundle(PlannedBundle)
  }

  /// The result.
  package struct Outcome: Sendable {
    package var plan: WorldPlan
    package var result: WorldResult
    /// Worlds run to find it.
    package var runs: Int
  }

  private let seed: UInt64
  private let options: WorldOptions
  private let run: (WorldPlan) throws -> WorldResult

  /// - Parameter run: Runs one world of this seed and these options with another plan.
  package init(
    seed: UInt64, options: WorldOptions, run: @escaping (WorldPlan) throws -> WorldResult
  ) {
    (self.seed, self.options, self.run) = (seed, options, run)
  }

  /// Shrinks a failing run, with `runsMax` worlds at most.
  package func shrink(
    _ failed: WorldResult, runsMax: Int = 400, progress: (Int, Int) -> Void = { _, _ in }
  ) throws -> Outcome {
    let full = WorldPlan(seed: seed, options: options)
    var elements: [Element] =
      full.actions.map { .action($0) } + full.faults.map { .fault($0) }
      + failed.happened.map { .chance($0) } + full.missions.map { .mission($0) }
      + full.bundles.map { .bundle($0) }
    var best = Outcome(plan: full, result: failed, runs: 0)
    var runs = 0
    func fails(_ kept: [Element]) throws -> Bool {
      runs += 1
      let plan = Self.plan(of: kept)
      let result = try run(plan)
      guard result.violations.first?.oracle == failed.violations.first?.oracle else {
        return false
      }
      best = Outcome(plan: plan, result: result, runs: runs)
      return true
    }
    var pieces = 2
    while elements.count > 1 && runs < runsMax {
      let size = (elements.count + pieces - 1) / pieces
      var isSmaller = false
      var start = 0
      while start < elements.count && runs < runsMax {
        var rest = elements
        rest.removeSubrange(start..<min(start + size, elements.count))
        if try fails(rest) {
          elements = rest
          isSmaller = true
          progress(elements.count, runs)
        } else {
          start += size
        }
      }
      if !isSmaller {
        if size == 1 { break }
        pieces = min(pieces * 2, elements.count)
      } else {
        pieces = max(2, min(pieces, elements.count))
      }
    }
    best.runs = runs
    return best
  }

  private static func plan(of elements: [Element]) -> WorldPlan {
    var plan = WorldPlan(actions: [], faults: [], chances: [])
    for element in elements {
      switch element {
      case .action(let action): plan.actions.append(action)
      case .fault(let fault): plan.faults.append(fault)
      case .chance(let name): plan.chances?.insert(name)
      case .mission(let mission): plan.missions.append(mission)
      case .bundle(let bundle): plan.bundles.append(bundle)
      }
    }
    return plan
  }
}

extension WorldPlan {
  init(actions: [PlannedAction], faults: [PlannedFault], chances: Set<FaultName>?) {
    (self.actions, self.faults, self.chances) = (actions, faults, chances)
  }

  /// The remaining elements, in the order of time, one line each, for a person.
  package var lines: [String] {
    let actions = actions.map { action in
      (
        action.at,
        "\(Self.time(action.at))  device-\(Self.two(action.device))  \(action.action.rawValue)"
      )
    }
    let faults = faults.map { fault in
      (
        fault.at,
        "\(Self.time(fault.at))  "
          + (fault.kind.isOfServer ? "server   " : "device-\(Self.two(fault.device))")
          + "  \(fault.kind.rawValue)" + (fault.kind.lasts ? " for \(fault.duration) ms" : "")
      )
    }
    let missions = missions.map { planned in
      (
        planned.at,
        "\(Self.time(planned.at))  "
          + (planned.isPublishers ? "server   " : "device-\(Self.two(planned.device))")
          + "  \(planned.kind.rawValue) mission-\(planned.mission)"
      )
    }
    let bundles = bundles.map { planned in
      (
        planned.at,
        "\(Self.time(planned.at))  "
          + (planned.isPublishers ? "server   " : "device-\(Self.two(planned.device))")
          + "  \(planned.kind.rawValue) \(BundleLibrary.id(planned.bundle, planned.version))"
      )
    }
    let chances = (chances ?? []).map(\.description).sorted().map { "by chance  \($0)" }
    return (actions + faults + missions + bundles).sorted { $0 < $1 }.map(\.1) + chances
  }

  private static func time(_ milliseconds: Int64) -> String {
    let digits = String(milliseconds)
    return String(repeating: " ", count: max(0, 7 - digits.count)) + digits + " ms"
  }

  private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

extension PlannedFault.Kind {
  fileprivate var isOfServer: Bool {
    [.serverCrash, .serverPowerLoss, .serverRestore, .nodeClockJump].contains(self)
  }

  /// True if the fault lasts for a while, or the repair does.
  fileprivate var lasts: Bool {
    ![.clockJump, .nodeClockJump, .copy, .upgrade, .migration].contains(self)
  }
}
