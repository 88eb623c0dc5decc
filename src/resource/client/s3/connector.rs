//! The HTTP client that `object_store` sends with: ours, which knows no TLS.

use async_trait::async_trait;
use http_body_util::BodyExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use reqwest::{Client, Request};

#[derive(Clone, Debug)]
pub struct Connector(pub Client);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Connector {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let url = parts.uri.to_string().parse();
        let url = url.map_err(|error| HttpError::new(HttpErrorKind::Request, error))?;
        let mut request = Request::new(parts.method, url);
        *request.headers_mut() = parts.headers;
        let body = body.collect().await?.to_bytes();
        *request.body_mut() = Some(body.into());
        let answer = self.0.execute(request).await.map_err(failed)?;
        let answer = axum::http::Response::<reqwest::Body>::from(answer);
        let (parts, body) = answer.into_parts();
        let body = HttpResponseBody::new(body.map_err(failed));
        Ok(HttpResponse::from_parts(parts, body))
    }
}

fn failed(error: reqwest::Error) -> HttpError {
    let kind = match () {
        () if error.is_connect() => HttpErrorKind::Connect,
        () if error.is_timeout() => HttpErrorKind::Timeout,
        () => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error)
}
