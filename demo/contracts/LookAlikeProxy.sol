// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// Emits the event of the fee proxy without a transfer, to fake a payment.
contract LookAlikeProxy {
    event TransferWithReferenceAndFee(
        address tokenAddress,
        address to,
        uint256 amount,
        bytes indexed paymentReference,
        uint256 feeAmount,
        address feeAddress
    );

    function transferFromWithReferenceAndFee(
        address tokenAddress,
        address to,
        uint256 amount,
        bytes calldata paymentReference,
        uint256 feeAmount,
        address feeAddress
    ) external {
        emit TransferWithReferenceAndFee(tokenAddress, to, amount, paymentReference, feeAmount, feeAddress);
    }
}
