import FerryProtocol

extension Bundles {
  /// Returns the versions of all bundles in the catalogue and on this device, by bundle and version.
  public func list() async throws(BundleError) -> [BundleStatus] {
    var names = Set(try await store.names())
    let records: [MissionRecord]
    do throws(MissionError) {
      records = try await missions.origin.published()
    } catch {
      throw BundleError(error)
    }
    for record in records { if let id = record.bundleID { names.insert(id.name) } }
    var found: [BundleStatus] = []
    for name in names.sorted() { found += try await versions(of: name, records) }
    return found
  }

  /// Returns the versions of one bundle, by version; empty if there is none.
  public func versions(of name: BundleName) async throws(BundleError) -> [BundleStatus] {
    let records: [MissionRecord]
    do throws(MissionError) {
      records = try await missions.origin.published()
    } catch {
      throw BundleError(error)
    }
    return try await versions(of: name, records)
  }

  private func versions(
    of name: BundleName, _ records: [MissionRecord]
  ) async throws(BundleError) -> [BundleStatus] {
    let choice = try await choice(of: name)
    let held: [BundleKey]
    do throws(MissionError) {
      held = try await missions.stored.heldBundles(of: name)
    } catch {
      throw BundleError(error)
    }
    var found: [BundleKey: BundleStatus] = [:]
    for offer in choice.offers {
      var status = BundleStatus(id: offer.id)
      let record = records.first { $0.id == offer.id.mission }
      (status.title, status.size) = (record?.title ?? "", record?.size ?? 0)
      (status.share, status.minShell) = (offer.listing.share, offer.listing.minShell)
      status.isOffered = choice.isOffered(offer)
      status.isWithdrawn = offer.listing.isWithdrawn
      found[offer.key] = status
    }
    let (state, here) = (choice.state, Set(held))
    for key in here.union(state.formers + [state.active].compactMap(\.self)) {
      var status = found[key] ?? BundleStatus(id: BundleID(name, key.version))
      status.isDownloaded = here.contains(key)
      status.isActive = state.active == key
      status.isConfirmed = status.isActive && state.isConfirmed
      status.isPrevious = state.formers.contains(key)
      found[key] = status
    }
    for key in found.keys where state.isBlocked(key) {
      found[key]?.failure = state.failure(of: key)
    }
    return found.sorted {
      ($0.key.version, $0.key.manifest) < ($1.key.version, $1.key.manifest)
    }.map(\.value)
  }
}
