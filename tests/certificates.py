"""The fixture `certificates`: what servers on loopback show, made with openssl."""

import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with key.pem, and broker.pem, expired.pem, elsewhere.pem and other.pem, each its own authority."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on the PATH")
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    (folder / "here").write_text("subjectAltName = IP:127.0.0.1\n")
    (folder / "elsewhere").write_text("subjectAltName = DNS:elsewhere\n")
    for key in ("key.pem", "other-key.pem"):
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
    for name, key, place, days in (
        ("broker.pem", "key.pem", "here", "1"),
        ("expired.pem", "key.pem", "here", "-1"),
        ("elsewhere.pem", "key.pem", "elsewhere", "1"),
        ("other.pem", "other-key.pem", "here", "1"),
    ):
        openssl("req", "-new", "-key", key, "-subj", f"/CN={name}", "-out", "request.pem")
        signing = ("-signkey", key, "-days", days, "-extfile", place, "-out", name)
        openssl("x509", "-req", "-in", "request.pem", *signing)
    return folder
