import FerryProtocol

/// Checks that a device reports exactly the outcomes of its pages. The server counts each device
/// once for each version: for the report with the greatest number, in whatever order the reports
/// arrive.
package struct OutcomesCounted: BundleOracle {
  package static let name = "outcomes-counted"

  private struct Happening: Hashable {
    var id: BundleID
    /// The reason of a failure; `nil` for a success.
    var failure: String?
  }

  private struct Account: Hashable {
    var device: DeviceID
    var id: BundleID
  }

  private struct Report: Hashable {
    var number: Int64
    var happening: Happening

    /// Returns the report stored by a server if this one arrives and it has another one.
    func after(_ kept: Report?) -> Report {
      if let kept, kept.number > number { kept } else { self }
    }
  }

  private struct Request {
    var reports: [Account: Report]
    /// Versions with another outcome of the same number at the same time on the server: their order
    /// is not known.
    var contested: Set<Account> = []
  }

  private var happened: [String: Set<Happening>] = [:]
  private var requests: [Int: Request] = [:]
  /// The reports that the server may have stored, `nil` for none. There are several only if the
  /// server failed to answer, or if two files have the same numbers.
  private var kept: [Account: Set<Report?>] = [:]
  private var identifiers: [String: Set<DeviceID>] = [:]
  /// Devices whose files were copied, or went back: another one may report with their identifier.
  private var shared: Set<String> = []

  package init() {}

  package mutating func see(_ event: BundleRunEvent) -> [Violation] {
    switch event {
    case .confirming(let device, let id):
      happened[device, default: []].insert(Happening(id: id, failure: nil))
    case .failing(let device, let id, let reason):
      happened[device, default: []].insert(Happening(id: id, failure: reason))
    case .listed(let device, _, let catalogue):
      identifiers[device, default: []].insert(catalogue.device)
    case .looked(let device, _, let bundles):
      return bundles.flatMap { bundle in
        bundle.outcomes.map {
          Happening(id: BundleID(bundle.name, $0.version), failure: $0.failure)
        }
      }.filter { happened[device]?.contains($0) != true }.map {
        Violation(oracle: Self.name, "\(device) keeps an outcome that never was: \(Self.text($0))")
      }
    case .wentBack(let device): shared.insert(device)
    case .copied(let device, let original):
      shared.formUnion([device, original])
      happened[device] = happened[original]
      identifiers[device] = identifiers[original]
    case .reporting(let device, let request, let number):
      return received(request, from: device, number)
    case .reported(let number, let isKept): answered(number, isKept)
    case .publishing, .showed, .naming, .named, .died: break
    }
    return []
  }

  private mutating func received(
    _ request: BundleReportsRequest, from device: String, _ number: Int
  ) -> [Violation] {
    var received = Request(reports: [:])
    var found: [Violation] = []
    for report in request.reports {
      var happening = Happening(id: report.bundle, failure: nil)
      if case .failure(let reason) = report.outcome { happening.failure = reason.text }
      let account = Account(device: request.device, id: report.bundle)
      received.reports[account] = Report(number: report.number, happening: happening)
      if happened[device]?.contains(happening) != true {
        let what = "\(device) reports an outcome that never was: \(Self.text(happening))"
        found.append(Violation(oracle: Self.name, what))
      }
      for (other, earlier) in requests
      where earlier.reports[account].map({
        $0.number == report.number && $0.happening != happening
      }) == true {
        requests[other]?.contested.insert(account)
        received.contested.insert(account)
      }
    }
    requests[number] = received
    return found
  }

  private mutating func answered(_ number: Int, _ isKept: Bool) {
    guard let request = requests.removeValue(forKey: number) else { return }
    for (account, report) in request.reports {
      let before = kept[account] ?? [nil]
      let after = Set(before.map { Optional(report.after($0)) })
      kept[account] = isKept && !request.contested.contains(account) ? after : before.union(after)
    }
  }

  // MARK: The end

  package mutating func judge(_ final: FinalBundleEvidence) -> [Violation] {
    let known = final.devices.flatMap { device in
      device.bundles.flatMap { bundle in
        bundle.outcomes.filter { final.published[BundleID(bundle.name, $0.version)] != nil }
          .compactMap { fault(of: $0, bundle.name, on: device) }
      }
    }
    let counted = final.published.keys.sorted().compactMap { id in
      fault(of: final.counts[id] ?? .init(successes: 0, failures: 0), id)
    }
    return (known + counted).map { Violation(oracle: Self.name, $0) }
  }

  private func fault(
    of outcome: BundleEvidence.Outcome, _ name: BundleName, on device: FinalBundleEvidence.Device
  ) -> String? {
    let happening = Happening(id: BundleID(name, outcome.version), failure: outcome.failure)
    let text = "\(device.name) knows “\(Self.text(happening))”"
    guard outcome.isReported else { return "\(text), and has not reported it" }
    let owned = identifiers[device.name, default: []].union([device.id])
    let reports = owned.map { device in
      Set((kept[Account(device: device, id: happening.id)] ?? [nil]).map { $0?.happening })
    }
    // Another device with the same files may have reported later.
    if shared.contains(device.name) || reports.contains(where: { $0.contains(happening) }) {
      return nil
    }
    guard let other = reports.lazy.flatMap({ $0 }).compactMap(\.self).first else {
      return "\(text), and the server has no report of it"
    }
    return "\(text), and its kept report is “\(Self.text(other))”"
  }

  private func fault(of counts: FinalBundleEvidence.Counts, _ id: BundleID) -> String? {
    let kept = kept.filter { $0.key.id == id }.values.map { $0.map { $0?.happening } }
    /// The least and the greatest number of devices with a report of a kind.
    func range(_ isOfKind: (Happening?) -> Bool) -> ClosedRange<Int> {
      kept.filter { $0.allSatisfy(isOfKind) }
        .count...kept.filter { $0.contains(where: isOfKind) }.count
    }
    let successes = range { $0 != nil && $0?.failure == nil }
    let failures = range { $0?.failure != nil }
    let all = range { $0 != nil }
    guard successes.contains(counts.successes), failures.contains(counts.failures),
      all.contains(counts.successes + counts.failures)
    else {
      return "the server counts \(counts.successes) successes and \(counts.failures) failures of "
        + "bundle \(id), and devices reported \(Self.text(successes)) successes and "
        + "\(Self.text(failures)) failures"
    }
    return nil
  }

  private static func text(_ range: ClosedRange<Int>) -> String {
    range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound) to \(range.upperBound)"
  }

  private static func text(_ happening: Happening) -> String {
    "bundle \(happening.id): " + (happening.failure ?? "it works")
  }
}
