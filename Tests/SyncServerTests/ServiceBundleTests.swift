import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite("Requests about bundles", .hangLimit)
struct ServiceBundleTests {
  private static let spaces = "/v1/spaces/notes"
  private let page = Array("<!doctype html>".utf8)

  /// Publishes a version with one page.
  private func publish(
    _ version: String, name: String = "board", page: [UInt8]? = nil, entry: String = "index.html",
    query: [String: String] = [:], _ fixture: MissionFixture
  ) async -> HTTPResponse {
    let content = page ?? self.page
    await fixture.upload(content)
    let item =
      #"{"path":"index.html","size":\#(content.count),"sha256":"\#(ContentHash(of: content))"}"#
    let document =
      #"{"items":[\#(item)],"bundle":{"name":"\#(name)","version":"\#(version)","entry":"\#(entry)"}}"#
    return await fixture.send(
      "PUT", "\(Self.spaces)/missions/bundle.\(name).\(version)", query: query,
      body: Array(document.utf8))
  }

  private func change(_ json: String, _ fixture: MissionFixture) async -> HTTPResponse {
    await fixture.send("POST", "\(Self.spaces)/bundles/board", body: Array(json.utf8))
  }

  @Test("a bundle is published for a share, listed, promoted, withdrawn, and signed by its content")
  func life() async throws {
    let fixture = try await MissionFixture()
    let published = await publish("1.0", query: ["rollout": "1000"], fixture)
    #expect(published.status == 200, "\(published.text)")
    let record = try MissionRecord(decoding: published.bytes)
    #expect(record.bundle?.share.hundredths == 1_000 && record.bundleID?.name.value == "board")
    #expect(await publish("1.1", fixture).status == 200)
    let listed = await fixture.send("GET", "\(Self.spaces)/bundles")
    let entries = try BundlePage(decoding: listed.bytes).entries
    #expect(entries.map(\.id.version.description) == ["1.0", "1.1"])
    #expect(entries.map(\.listing.share.hundredths) == [1_000, 10_000])
    let promoted = await change(#"{"version":"1.0","rollout":5000}"#, fixture)
    #expect(try BundleEntry(decoding: promoted.bytes).listing.share.hundredths == 5_000)
    let withdrawn = await change(#"{"version":"1.0","withdrawn":true}"#, fixture)
    #expect(try BundleEntry(decoding: withdrawn.bytes).listing.isWithdrawn)
    let again = await change(#"{"version":"1.0","rollout":10000}"#, fixture)
    #expect(again.status == 409 && again.problem?.code == .missionConflict)
    #expect(await change(#"{"version":"9","rollout":1}"#, fixture).problem?.code == .notFound)
    #expect(await change(#"{"version":"9"}"#, fixture).problem?.code == .malformedMessage)
    // The catalogue pulled by devices shows it.
    let pulled = await fixture.send("GET", "\(Self.spaces)/changes")
    #expect(pulled.text.contains("withdrawnAt") && pulled.text.contains("rollout"))
    let document = try #require(try fixture.blobs.content(of: record.manifest, limit: 10_000))
    #expect(try MissionManifest(decoding: document).bundle?.id == record.bundleID)
  }

  @Test("missions and versions have pages, and no mission counts among the versions")
  func pages() async throws {
    let fixture = try await MissionFixture()
    for version in ["1.9", "1.10", "2"] {
      #expect(await publish(version, fixture).status == 200)
      #expect(await publish(version, name: "a-b", fixture).status == 200)
    }
    await fixture.upload(page)
    _ = await fixture.publish([page])
    func list(_ query: [String: String]) async throws -> ([BundleEntry], MissionID?) {
      let answer = await fixture.send("GET", "\(Self.spaces)/bundles", query: query)
      let list = try BundlePage(decoding: answer.bytes)
      return (list.entries, list.next)
    }
    let whole = try await list([:]).0.map(\.id)
    #expect(whole == whole.sorted() && whole.count == 6)
    for limit in 1...7 {
      var (found, place) = ([BundleID](), MissionID?.none)
      repeat {
        let after = place.map { ["after": $0.value] } ?? [:]
        let page = try await list(["limit": "\(limit)"].merging(after) { one, _ in one })
        found += page.0.map(\.id)
        place = page.1
      } while place != nil
      #expect(found.sorted() == whole && Set(found).count == 6, "\(limit)")
    }
    let shown = await fixture.send("GET", "\(Self.spaces)/bundles/board")
    let versions = try BundleOverview(decoding: shown.bytes).versions
    #expect(versions.map(\.entry.id.version.description) == ["2", "1.10", "1.9"])
    let first = await fixture.send("GET", "\(Self.spaces)/missions", query: ["limit": "6"])
    let page = try MissionPage(decoding: first.bytes)
    let (records, next) = (page.records, page.next)
    #expect(records.count == 6 && next?.value == "bundle.board.2")
    for query in [["limit": "0"], ["limit": "1001"], ["after": "-"], ["after": ""]] {
      for list in ["missions", "bundles"] {
        let answer = await fixture.send("GET", "\(Self.spaces)/\(list)", query: query)
        #expect(answer.problem?.code == .malformedMessage, "\(query)")
      }
    }
  }

  @Test("a published version never gets other content, and a withdrawn one does not return")
  func immutable() async throws {
    let fixture = try await MissionFixture()
    let first = await publish("1", query: ["rollout": "1"], fixture)
    // The same again changes nothing, whatever the rollout.
    #expect(await publish("1", query: ["rollout": "9"], fixture).bytes == first.bytes)
    let other = await publish("1", page: Array("other".utf8), fixture)
    #expect(other.status == 409 && other.problem?.detail.contains("another version") == true)
    let item = #"{"path":"a","size":15,"sha256":"\#(ContentHash(of: page))"}"#
    let plain = await fixture.send(
      "PUT", "\(Self.spaces)/missions/bundle.board.1", body: Array(#"{"items":[\#(item)]}"#.utf8))
    #expect(plain.problem?.code == .missionConflict)
    #expect(await change(#"{"version":"1","withdrawn":true}"#, fixture).status == 200)
    let returned = await publish("1", fixture)
    #expect(returned.problem?.detail.contains("withdrawn") == true)
  }

  @Test("a bundle that breaks a rule is refused before anything of it is visible")
  func hostile() async throws {
    let fixture = try await MissionFixture()
    for (version, name, entry, query) in [
      ("1", "board", "main.html", [:]), ("1", "board", "../index.html", [:]),
      ("1", "Board", "index.html", [:]), ("01", "board", "index.html", [:]),
      ("1", "board", "index.html", ["rollout": "10001"]),
      ("1", "board", "index.html", ["rollout": "-1"]),
      ("1", "board", "index.html", ["rollout": "1e3"]),
    ] as [(String, String, String, [String: String])] {
      let answer = await publish(version, name: name, entry: entry, query: query, fixture)
      #expect(answer.problem?.code == .malformedMessage, "\(version) \(name) \(entry) \(query)")
    }
    let mission = await fixture.send(
      "PUT", "\(Self.spaces)/missions/tour", query: ["rollout": "1"],
      body: MissionFixture.document([page]))
    #expect(mission.problem?.code == .malformedMessage)
    let listed = await fixture.send("GET", "\(Self.spaces)/bundles")
    #expect(listed.text == #"{"bundles":[],"next":null}"#)
    for name in ["none", "Board", "..", "a b"] {
      let answer = await fixture.send("GET", "\(Self.spaces)/bundles/\(name)")
      #expect(answer.status == (name == "none" ? 404 : 400), "\(name)")
    }
  }

  @Test("members report, and only admins read reports and change rollouts")
  func roles() async throws {
    let fixture = try await MissionFixture()
    let record = try MissionRecord(decoding: await publish("1", fixture).bytes)
    let id = try #require(record.bundleID)
    func body(_ number: UInt64) -> [UInt8] {
      BundleReportsRequest(
        device: DeviceID(UniqueID(high: 1, low: number)),
        reports: [
          BundleReport(
            id, record.manifest, .failure(BundleReason(bounding: "by \(number)")), number: 1)
        ]
      ).encoded()
    }
    for (number, role) in Role.allCases.enumerated() {
      let token = try await fixture.token(role)
      let kept = await fixture.send(
        "POST", "\(Self.spaces)/bundle-reports", token: token, body: body(UInt64(number)))
      #expect(kept.text == #"{"kept":1}"#, "\(role): \(kept.text)")
      let list = await fixture.send("GET", "\(Self.spaces)/bundles", token: token)
      #expect(list.status == 200)
      let status = role == .admin ? 200 : 403
      let shown = await fixture.send("GET", "\(Self.spaces)/bundles/board", token: token)
      #expect(shown.status == status, "\(role)")
      let changed = await fixture.send(
        "POST", "\(Self.spaces)/bundles/board", token: token,
        body: Array(#"{"version":"1","rollout":0}"#.utf8))
      #expect(changed.status == status, "\(role)")
      let foreign = await fixture.send(
        "POST", "/v1/spaces/other/bundle-reports", token: token, body: body(9))
      #expect(foreign.problem?.code == .forbidden)
    }
    let nobody = await fixture.send("POST", "\(Self.spaces)/bundle-reports", body: body(8))
    #expect(nobody.problem?.code == .unauthorized)
    let admin = try await fixture.token(.admin)
    let shown = await fixture.send("GET", "\(Self.spaces)/bundles/board", token: admin)
    let tally = try BundleOverview(decoding: shown.bytes).versions[0].tally
    #expect(tally.failures == Int64(Role.allCases.count) && tally.successes == 0)
    #expect(tally.latest.allSatisfy { $0.at == ServiceClockDouble.wall })
  }

  @Test("a member cannot report as another's device, nor as more devices than its quota")
  func hostileReports() async throws {
    var quotas = Quotas.standard
    quotas.devices = 2
    let fixture = try await MissionFixture(quotas: quotas)
    let record = try MissionRecord(decoding: await publish("1", fixture).bytes)
    let id = try #require(record.bundleID)
    let (one, two) = (try await fixture.token(.reader), try await fixture.token(.reader))
    func send(_ number: UInt64, _ token: AccessToken) async -> HTTPResponse {
      let request = BundleReportsRequest(
        device: DeviceID(UniqueID(high: 1, low: number)),
        reports: [BundleReport(id, record.manifest, .success, number: 1)])
      return await fixture.send(
        "POST", "\(Self.spaces)/bundle-reports", token: token, body: request.encoded())
    }
    #expect(await send(1, one).status == 200)
    #expect(await send(1, two).problem?.code == .deviceTaken)
    #expect(await send(2, one).status == 200)
    for number in 3...9 as ClosedRange<UInt64> {
      let refused = await send(number, one)
      #expect(refused.status == 507 && refused.problem?.code == .storageQuota)
    }
    for body in [[], Array("{}".utf8), [UInt8](repeating: 0x5B, count: 5_000)] {
      let answer = await fixture.send(
        "POST", "\(Self.spaces)/bundle-reports", token: one, body: body)
      #expect(answer.problem?.code == .malformedMessage)
    }
    let tally = try await BundleCatalogue(fixture.store).bundleTallies(
      of: [id], in: try #require(try await fixture.store.space(named: .known("notes"))).id,
      latest: 9)
    #expect(tally[id]?.successes == 2)
  }
}
