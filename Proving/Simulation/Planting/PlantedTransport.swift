import FerryNetworking
import FerryProtocol

/// A device's transport with ``PlantedFault/cursorApartFromRows``: the cursor of a list is saved
/// before the list is applied.
struct PlantedTransport: Transport {
  let inner: SimulatedTransport
  /// Saves the cursor of a list's last page.
  let save: @Sendable (PageHead) -> Void

  func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    let response = try await inner.send(request)
    if request.url.contains("/changes"), let head = try? PageReader.head(of: response.body),
      !head.more
    {
      save(head)
    }
    return response
  }

  func stream(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
    try await inner.stream(request)
  }
}
