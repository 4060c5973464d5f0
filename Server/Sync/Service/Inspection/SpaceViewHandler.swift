import FerryHTTPServer
import FerryProtocol

/// Shows spaces, devices and refusals to administrators (SPEC.md §32).
struct SpaceViewHandler: Sendable {
  let core: ServiceCore
  let inspection: InspectionKeeper

  /// Lists the spaces administered by the caller.
  func spaces(
    _ context: RequestContext, _ caller: Identity
  ) async throws(Problem) -> HTTPResponse {
    let query = InspectionQuery(values: context.request.query)
    let limit = try query.limit()
    await inspection.save()
    let now = core.clock.wall()
    var found: [SpaceOverview] = []
    var last: String? = query.values["after"] ?? ""
    // Spaces of others are skipped. One answer looks at a bounded number of them.
    for _ in 0..<20 {
      guard found.count < limit, let after = last else { break }
      let page = try await core.ask { (store) async throws(StoreError) in
        try await SpaceInspection(store).overviews(
          after: after, limit: InspectionQuery.limitMax, now: now)
      }
      last = page.count < InspectionQuery.limitMax ? nil : page.last?.space.name.value
      for space in page where caller.grants.role(in: space.space.name) == .admin {
        if found.count == limit {
          last = found.last?.space.name.value
          break
        }
        found.append(space)
      }
    }
    var json = JSONWriter(capacity: 256 + found.count * 300)
    json.object { json in
      json.member("time", now)
      json.key("spaces")
      json.array(of: found) { $1.write(to: &$0, now: now) }
      json.member("next", last)
    }
    return .json(json.finish())
  }

  func overview(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    await inspection.save()
    _ = try await core.find(name)
    let now = core.clock.wall()
    let space = try await core.ask { (store) async throws(StoreError) in
      try await SpaceInspection(store).overview(of: name, now: now)
    }
    guard let space else { throw .unknownSpace(name) }
    var json = JSONWriter(capacity: 400)
    space.write(to: &json, now: now)
    return .json(json.finish())
  }

  func devices(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let query = InspectionQuery(values: context.request.query)
    let (limit, after) = (try query.limit(), try query.device("after"))
    await inspection.save()
    let space = try await core.current(name)
    let devices = try await core.ask { (store) async throws(StoreError) in
      try await DeviceInspection(store).devices(in: space.id, after: after, limit: limit)
    }
    var json = JSONWriter(capacity: 256 + devices.count * 300)
    json.object { json in
      json.member("head", digits: space.head)
      json.key("devices")
      json.array(of: devices) { $1.write(to: &$0, head: space.head) }
      json.member("next", devices.count < limit ? nil : devices.last?.device.description)
    }
    return .json(json.finish())
  }

  func rejections(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let query = InspectionQuery(values: context.request.query)
    let (limit, before) = (try query.limit(), try query.rejectionPlace())
    await inspection.save()
    let space = try await core.find(name)
    let found = try await core.ask { (store) async throws(StoreError) in
      try await DeviceInspection(store).rejections(in: space.id, before: before, limit: limit)
    }
    let names = try await core.identities(of: found.compactMap(\.device), in: space.id)
    var json = JSONWriter(capacity: 256 + found.count * 400)
    json.object { json in
      json.key("rejections")
      json.array(of: found) { $1.write(to: &$0, names) }
      let last = found.count < limit ? nil : found.last
      json.member("next", last.map { "\($0.lastAt)/\($0.subject)" })
    }
    return .json(json.finish())
  }

  func activity(
    _ context: RequestContext, _ name: SpaceName
  ) async throws(Problem) -> HTTPResponse {
    let query = InspectionQuery(values: context.request.query)
    let unit = try query.unit()
    let now = core.clock.wall()
    // At most as many intervals as are kept.
    let since = max(try query.moment("since") ?? 0, now - unit.keptMilliseconds)
    await inspection.save()
    let space = try await core.find(name)
    let counts = try await core.ask { (store) async throws(StoreError) in
      try await SpaceInspection(store).activity(in: space.id, by: unit, since: since)
    }
    var json = JSONWriter(capacity: 256 + counts.count * 80)
    json.object { json in
      json.member("time", now)
      json.member("unit", unit.rawValue)
      json.key("counts")
      json.array(of: counts)
    }
    return .json(json.finish())
  }
}
