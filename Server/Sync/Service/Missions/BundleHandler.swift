import FerryHTTPServer
import FerryProtocol

/// Answers requests about a space's bundles (SPEC.md §31).
struct BundleHandler: Sendable {
  let core: ServiceCore

  /// Failures of each version in an answer.
  private static let failuresShown = 20

  func list(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let query = try MissionListQuery(context.request.query)
    let space = try await core.find(name)
    let (entries, next) = try await core.ask { (store) async throws(StoreError) in
      try await BundleCatalogue(store).bundleEntries(
        in: space.id, after: query.after, limit: query.limit)
    }
    return .json(BundlePage(entries, next: next).encoded())
  }

  func show(_ context: RequestContext, _ name: SpaceName) async throws(Problem) -> HTTPResponse {
    let bundle = try Self.bundleName(context)
    let space = try await core.find(name)
    let overview = try await core.ask { (store) async throws(StoreError) in
      try await BundleCatalogue(store).bundleOverview(
        of: bundle, in: space.id, latest: Self.failuresShown)
    }
    guard let overview else {
      throw Problem(.notFound, "there is no bundle \(bundle) in space \(name)")
    }
    return .json(overview.encoded())
  }

  /// Changes the rollout of a version, or withdraws it.
  func change(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let bundle = try Self.bundleName(context)
    let request = try core.read(context.request.body, BundleChangeRequest.init(decoding:limits:))
    let space = try await core.find(name)
    let mark = core.mark(context.principal ?? .anonymous)
    let record = try await core.ask { (store) async throws(StoreError) in
      try await store.changeBundle(
        BundleID(bundle, request.version), request.change, in: space.id, now: mark.at, by: mark)
    }.get()
    guard let entry = BundleEntry(record) else {
      throw Problem(.internalError, "the version's record cannot be read")
    }
    return .json(entry.encoded())
  }

  /// Adds the reports of a device.
  func addReports(
    _ context: inout RequestContext, _ name: SpaceName, _ admission: Admission
  ) async throws(Problem) -> HTTPResponse {
    let request = try core.read(context.request.body, BundleReportsRequest.init(decoding:limits:))
    context.device = request.device
    let space = try await core.find(name)
    let (now, quota) = (core.clock.wall(), core.quotas.devices)
    let principal = admission.principal
    let kept = try await core.ask { (store) async throws(StoreError) in
      try await BundleCatalogue(store).storeBundleReports(
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
