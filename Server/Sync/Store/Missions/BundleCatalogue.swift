import FerryProtocol

/// The published bundles of a space, and the reports about them, in both stores.
package struct BundleCatalogue: Sendable {
  private let store: any SyncStore

  package init(_ store: any SyncStore) { self.store = store }

  // MARK: Versions

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
    let page = try await store.missions(
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

  // MARK: Reports

  /// Stores reports of one device. Each replaces the device's former report about the version.
  /// Skips reports about unpublished versions, and those with a smaller number than the former one.
  ///
  /// - Parameters:
  ///   - now: The wall clock, milliseconds since 1970.
  ///   - quota: Devices per account that report about one version.
  /// - Returns: The number of stored reports; a problem if another principal has the device, or
  ///   this one reports by too many.
  package func storeBundleReports(
    _ reports: [BundleReport], of device: DeviceID, in space: Int64, now: Int64,
    by principal: Principal, quota: Int64
  ) async throws(StoreError) -> Result<Int, Problem> {
    try await store.plain(.writing) { connection in
      try connection.together {
        let known = try connection.identities(of: [device], in: space).first
        return try BundleReports(space: space).store(
          reports, of: device, owner: known.map { Principal($0.principal) ?? .anonymous }, now: now,
          by: principal, quota: quota, on: connection)
      }
    }
  }

  /// Returns the reports about these versions of a bundle, and of each version the `latest` last
  /// failures.
  package func bundleTallies(
    of bundles: [BundleID], in space: Int64, latest: Int
  ) async throws(StoreError) -> [BundleID: BundleTally] {
    try await store.plain(.reading) { connection in
      var tallies: [BundleID: BundleTally] = [:]
      for bundle in bundles {
        tallies[bundle] = try BundleReports(space: space).tally(
          of: bundle, latest: latest, on: connection)
      }
      return tallies
    }
  }
}
