import FerryNetworking
import FerryPlatform

extension CacheableRequest {
  /// The address as it travels, with all parameters.
  var address: String {
    if query.isEmpty { return endpoint }
    let items = query.map {
      PercentEncoding.encode($0.name) + "=" + PercentEncoding.encode($0.value)
    }
    return endpoint + (endpoint.has("?") ? "&" : "?") + items.joined(separator: "&")
  }
}
