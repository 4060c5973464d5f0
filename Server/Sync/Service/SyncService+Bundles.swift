import FerryHTTPServer
import FerryProtocol

// The requests about a space's bundles (SPEC.md §31).
extension SyncService {
  /// Failures of each version in an answer.
  private static let failuresShown = 20

  func bundles(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let (place, limit) = try Self.missionPlace(context.request.query)
    let space = try await find(name)
    let store = parts.store
    let (entries, next) = try await ask { () async throws(StoreError) in
      try await store.bundleEntries(in: space.id, after: place, limit: limit)
    }
    return .json(BundlePage(entries, next: next).encoded())
  }

  func bundle(_ context: RequestContext, _ name: SpaceName) async throws(Problem) -> HTTPResponse {
    let bundle = try Self.bundleName(context)
    let space = try await find(name)
    let store = parts.store
    let overview = try await ask { () async throws(StoreError) in
      try await store.bundleOverview(of: bundle, in: space.id, latest: Self.failuresShown)
    }
    guard let overview else {
      throw Problem(.notFound, "there is no bundle \(bundle) in space \(name)")
    }
    return .json(overview.encoded())
  }

  /// Changes the rollout of a version, or withdraws it.
  func changeBundle(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let bundle = try Self.bundleName(context)
    let request = try read(context.request.body, BundleChangeRequest.init(decoding:limits:))
    let space = try await find(name)
    let (store, mark) = (parts.store, mark(context.principal ?? .anonymous))
    let record = try await ask { () async throws(StoreError) in
      try await store.changeBundle(
        BundleID(bundle, request.version), request.change, in: space.id, now: mark.at, by: mark)
    }.get()
    guard let entry = BundleEntry(record) else {
      throw Problem(.internalError, "the version's record cannot be read")
    }
    return .json(entry.encoded())
  }

  /// Adds the reports of a device.
  func addBundleReports(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    let request = try read(context.request.body, BundleReportsRequest.init(decoding:limits:))
    context.device = request.device
    let space = try await find(name)
    let (store, now, quota) = (parts.store, parts.clock.wall(), parts.quotas.devices)
    let principal = admission.principal
    let kept = try await ask { () async throws(StoreError) in
      try await store.storeBundleReports(
        request.reports, of: request.device, in: space.id, now: now, by: principal, quota: quota)
    }.get()
    var json = JSONWriter(capacity: 32)
    json.object { $0.member("kept", kept) }
    return .json(json.finish())
  }

  private static func bundleName(_ context: RequestContext) throws(Problem) -> BundleName {
    guard let name = BundleName(context.match.itemText ?? "") else {
      throw Problem(
        .malformedMessage,
        "a bundle's name has 1 to 64 characters of a–z 0–9 _ - and begins with a letter or digit")
    }
    return name
  }
}

extension SyncStore {
  /// Returns published versions in the order of their missions' names, those of a page by bundle
  /// and version.
  ///
  /// - Parameters:
  ///   - mission: The place of the list before the page; `nil` for the start.
  ///   - bundle: The only bundle to list; `nil` for all of them.
  /// - Returns: The versions, and the place at which the list continues; `nil` at the end.
  package func bundleEntries(
    in space: Int64, after mission: MissionID?, of bundle: BundleName? = nil, limit: Int
  ) async throws(StoreError) -> ([BundleEntry], next: MissionID?) {
    let prefix = BundleID.missions(of: bundle)
    let page = try await missions(
      in: space, after: mission.map { max($0, prefix) } ?? prefix, limit: limit)
    let entries = page.records.filter { $0.id.value.begins(with: prefix.value) }
    let isLast = page.records.last.map { !$0.id.value.begins(with: prefix.value) } ?? false
    return (
      entries.compactMap { BundleEntry($0) }.sorted { $0.id < $1.id }, isLast ? nil : page.next
    )
  }

  /// Returns the latest published versions of a bundle, by version.
  private func latestEntries(
    of bundle: BundleName, in space: Int64
  ) async throws(StoreError) -> [BundleEntry] {
    var (entries, place) = ([BundleEntry](), MissionID?.none)
    repeat {
      let (page, next) = try await bundleEntries(
        in: space, after: place, of: bundle, limit: MissionPage.countMax)
      entries = (entries + page).sorted { $0.id < $1.id }.suffix(BundleOverview.versionsMax)
      place = next
    } while place != nil
    return entries
  }

  /// Returns a bundle with the latest versions and the reports about them; `nil` if no version is
  /// published.
  ///
  /// - Parameter latest: Failures to name of each version.
  package func bundleOverview(
    of name: BundleName, in space: Int64, latest: Int
  ) async throws(StoreError) -> BundleOverview? {
    let entries = try await latestEntries(of: name, in: space)
    guard !entries.isEmpty else { return nil }
    let tallies = try await bundleTallies(of: entries.map(\.id), in: space, latest: latest)
    return BundleOverview(
      name,
      entries.reversed().map {
        BundleOverview.Version(entry: $0, tally: tallies[$0.id] ?? BundleTally())
      })
  }
}
